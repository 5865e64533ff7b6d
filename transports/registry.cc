#include "transports/registry.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "transports/tcp/rail.h"

namespace slime {

namespace {

using Rails = std::vector<std::unique_ptr<Rail>>;

struct Backend {
  std::string_view name;
  Result<Rails> (*open)(const Settings& settings, std::vector<std::string>* notes);
};

constexpr std::array kBackends = {Backend{"tcp", tcp::open_tcp_rails}};

std::string known_names() {
  std::string names;
  for (const Backend& backend : kBackends) {
    if (!names.empty()) names += ", ";
    names += backend.name;
  }
  return names;
}

// "a, b,,a" -> a, b
std::vector<std::string_view> split_names(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

// Each backend's rails come sorted by name already; the sort is stable.
bool comes_before(const std::unique_ptr<Rail>& left, const std::unique_ptr<Rail>& right) {
  const std::string& a = left->caps().pci_path;
  const std::string& b = right->caps().pci_path;
  return a.empty() == b.empty() ? a < b : b.empty();
}

}  // namespace

Result<Rails> open_rails(const Settings& settings, std::vector<std::string>* notes) {
  Rails rails;
  for (const std::string_view name : split_names(settings.transports)) {
    const auto* backend = std::find_if(kBackends.begin(), kBackends.end(),
                                       [&](const Backend& b) { return b.name == name; });
    if (backend == kBackends.end()) {
      return fail(make_error(Status::kConfig, 0,
                             "NCCL_SLIME_TRANSPORTS=%s: there is no transport \"%.*s\"; known: %s",
                             settings.transports.c_str(), static_cast<int>(name.size()),
                             name.data(), known_names().c_str()));
    }
    auto opened = backend->open(settings, notes);
    if (!opened) return fail(std::move(opened.error()));
    std::move(opened->begin(), opened->end(), std::back_inserter(rails));
  }
  std::stable_sort(rails.begin(), rails.end(), comes_before);
  return rails;
}

}  // namespace slime
