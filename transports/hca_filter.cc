#include "transports/hca_filter.h"

#include <algorithm>

#include "base/text.h"
#include "settings/settings.h"

namespace slime {

HcaFilter::HcaFilter(std::string_view list) {
  if (list.starts_with('^')) {
    exclude_ = true;
    list.remove_prefix(1);
  }
  if (list.starts_with('=')) {
    exact_ = true;
    list.remove_prefix(1);
  }
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
    Entry entry;
    const size_t colon = item.find(':');
    if (colon != item.npos) {
      entry.port = parse_whole<int>(item.substr(colon + 1)).value_or(0);
      if (entry.port <= 0 && malformed_.empty()) malformed_ = item;
    }
    entry.name = item.substr(0, colon);
    if (!entry.name.empty()) entries_.push_back(std::move(entry));
  }
}

bool HcaFilter::names(std::string_view device, int port) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    const bool named = exact_ ? device == entry.name : device.starts_with(entry.name);
    return named && (entry.port == 0 || entry.port == port);
  });
}

bool HcaFilter::lets_through(std::string_view device, int port) const {
  return entries_.empty() || names(device, port) != exclude_;
}

Result<HcaFilter> parse_hca_filter(const std::string& list) {
  HcaFilter filter(list);
  if (filter.malformed().empty()) return filter;
  return fail(make_error(Status::kConfig, 0,
                         "%s=%s: \"%s\" has no port number; write name or name:port, such as "
                         "mlx5_0:1",
                         variable_of("NCCL_SLIME_HCA").c_str(), list.c_str(),
                         filter.malformed().c_str()));
}

}  // namespace slime
