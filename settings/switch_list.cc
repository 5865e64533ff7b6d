#include "settings/switch_list.h"

#include "base/text.h"

namespace slime {
namespace {

// host:port, or host:port*weight.
Result<ListedSwitch> split_switch(std::string_view text) {
  ListedSwitch one{std::string(text), {}};
  const size_t star = text.find('*');
  if (star != std::string_view::npos) {
    const auto weight = parse_whole<uint32_t>(text.substr(star + 1));
    if (!weight || *weight < 1 || *weight > kMaxSwitchWeight) {
      return bad_switches(
          text, "has a weight that is no number from 1 to " + std::to_string(kMaxSwitchWeight));
    }
    one.weight = *weight;
  }
  const std::string_view host = text.substr(0, star);
  if (host.empty()) return bad_switches(text, "names no host");
  auto where =
      split_host_port(host, kSwitchPort, "NCCL_SLIME_SWITCH, the control channel of a switch");
  if (!where) return fail(std::move(where.error()));
  one.where = std::move(*where);
  return one;
}

}  // namespace

tl::unexpected<Error> bad_switches(std::string_view text, const std::string& why) {
  return fail(Status::kConfig,
              "NCCL_SLIME_SWITCH, the control channels of the switches: \"%s\" %s; give it as "
              "host:port, or host:port*weight,host:port*weight,...",
              std::string(text).c_str(), why.c_str());
}

Result<std::vector<ListedSwitch>> split_switches(std::string_view text) {
  std::vector<ListedSwitch> all;
  for (size_t at = 0, end = 0; end != std::string_view::npos; at = end + 1) {
    end = text.find(',', at);
    auto one = split_switch(text.substr(at, end == std::string_view::npos ? end : end - at));
    if (!one) return fail(std::move(one.error()));
    all.push_back(std::move(*one));
  }
  if (all.size() <= kMaxSwitches) return all;
  return bad_switches(text, "names " + std::to_string(all.size()) + " switches, and " +
                                std::to_string(kMaxSwitches) + " are the most");
}

}  // namespace slime
