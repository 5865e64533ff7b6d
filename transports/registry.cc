#include "transports/registry.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "transports/fabric/discovery.h"
#include "transports/rail_order.h"
#include "transports/tcp/rail.h"
#include "transports/verbs/rail.h"

namespace slime {

namespace {

using Rails = std::vector<std::unique_ptr<Rail>>;

// The connections beside the fabric go over the first interface that tcp would take.
Result<Rails> open_fabric_rails(const Settings& settings, std::vector<std::string>* notes) {
  auto side_rail = tcp::open_tcp_rails(settings, nullptr);
  if (!side_rail) return fail(std::move(side_rail.error()));
  if (side_rail->empty()) {
    notes->emplace_back(
        "libfabric: no interface of this host has an address for the connections beside the NICs");
    return Rails();
  }
  return fabric::open_fabric_rails(std::move(side_rail->front()), settings, notes);
}

struct Backend {
  std::string_view name;
  Result<Rails> (*open)(const Settings& settings, std::vector<std::string>* notes);
};

// In the order in which "auto" tries them.
constexpr std::array kBackends = {Backend{"verbs", verbs::open_verbs_rails},
                                  Backend{"libfabric", open_fabric_rails},
                                  Backend{"tcp", tcp::open_tcp_rails}};
constexpr std::string_view kAuto = "auto";

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

// Why a backend that no setting names is not opened at all; empty: it is opened.
std::string reason_to_leave_out(const Backend& backend, const Settings& settings) {
  if (backend.name == "verbs" && settings.ib_disable) {
    return "left out by " + variable_of("NCCL_SLIME_IB_DISABLE");
  }
  if (backend.name == "libfabric" && !fabric::is_wanted(settings, "/sys")) {
    return "no EFA NIC, and NCCL_SLIME_FABRIC_PROVIDER names no other provider";
  }
  return "";
}

// The rails of the first backend that has any: a slow transport beside a fast one gains nothing.
Result<Rails> open_first(const Settings& settings, std::vector<std::string>* notes) {
  for (const Backend& backend : kBackends) {
    if (const std::string reason = reason_to_leave_out(backend, settings); !reason.empty()) {
      notes->push_back(std::string(backend.name) + ": " + reason);
      continue;
    }
    auto rails = backend.open(settings, notes);
    if (!rails || !rails->empty()) return rails;
  }
  return Rails();
}

// "tcp: no address" of the backend tcp -> "no address"
std::string join_notes(std::string_view backend, const std::vector<std::string>& notes) {
  const std::string prefix = std::string(backend) + ": ";
  std::string text;
  for (const std::string& note : notes) {
    text += (text.empty() ? "" : "; ") + note.substr(note.starts_with(prefix) ? prefix.size() : 0);
  }
  return text;
}

TransportState look_at(const Backend& backend, const Settings& settings) {
  TransportState state{.name = std::string(backend.name)};
  const auto named = split_names(settings.transports);
  if (std::ranges::find(named, backend.name) == named.end()) {
    state.reason = reason_to_leave_out(backend, settings);
  }
  if (!state.reason.empty()) return state;
  std::vector<std::string> notes;
  const auto rails = backend.open(settings, &notes);
  for (size_t i = 0; rails && i < rails->size(); ++i) {
    state.rails.push_back((*rails)[i]->caps().name);
  }
  if (!rails) state.reason = rails.error().what;
  if (rails && rails->empty()) state.reason = join_notes(backend.name, notes);
  return state;
}

// "auto, verbs (no rail here: no RDMA device), tcp (rails here: 4)"
std::string describe_known(const Settings& settings) {
  std::string text(kAuto);
  for (const Backend& backend : kBackends) {
    const TransportState state = look_at(backend, settings);
    text += ", " + state.name + " (";
    text += state.rails.empty() ? "no rail here: " + state.reason
                                : "rails here: " + std::to_string(state.rails.size());
    text += ")";
  }
  return text;
}

Result<Rails> open_backend(std::string_view name, const Settings& settings,
                           std::vector<std::string>* notes) {
  if (name == kAuto) return open_first(settings, notes);
  const auto backend = std::ranges::find(kBackends, name, &Backend::name);
  if (backend != kBackends.end()) return backend->open(settings, notes);
  return fail(make_error(Status::kConfig, 0,
                         "NCCL_SLIME_TRANSPORTS=%s: there is no transport \"%.*s\"; known: %s",
                         settings.transports.c_str(), static_cast<int>(name.size()), name.data(),
                         describe_known(settings).c_str()));
}

}  // namespace

Result<Rails> open_rails(const Settings& settings, std::vector<std::string>* notes) {
  const std::vector<std::string_view> names = split_names(settings.transports);
  if (names.size() > 1 && std::ranges::find(names, kAuto) != names.end()) {
    return fail(make_error(Status::kConfig, 0,
                           "NCCL_SLIME_TRANSPORTS=%s: \"auto\" stands alone; name the transports "
                           "that are wanted (%s)",
                           settings.transports.c_str(), describe_known(settings).c_str()));
  }
  std::vector<std::string> unread;
  if (notes == nullptr) notes = &unread;
  Rails rails;
  for (const std::string_view name : names) {
    auto opened = open_backend(name, settings, notes);
    if (!opened) return opened;
    std::move(opened->begin(), opened->end(), std::back_inserter(rails));
  }
  put_in_order(&rails);
  for (const std::string& sentence : describe_shared_guids(rails)) {
    SLIME_WARN("%s", sentence.c_str());
  }
  return rails;
}

std::vector<TransportState> survey_transports(const Settings& settings) {
  const std::vector<std::string_view> names = split_names(settings.transports);
  std::vector<TransportState> states;
  for (const Backend& backend : kBackends) {
    states.push_back(look_at(backend, settings));
    states.back().wanted = std::ranges::find(names, backend.name) != names.end();
  }
  if (names.size() == 1 && names.front() == kAuto) {
    const auto has_rails = [](const TransportState& state) { return !state.rails.empty(); };
    const auto first = std::ranges::find_if(states, has_rails);
    if (first != states.end()) first->wanted = true;
    return states;
  }
  for (const std::string_view name : names) {
    if (std::ranges::find(kBackends, name, &Backend::name) != kBackends.end()) continue;
    const char* const reason = name == kAuto ? "stands alone" : "there is no such transport";
    states.push_back({std::string(name), false, true, {}, reason});
  }
  return states;
}

}  // namespace slime
