#include "collnet/comm/switches.h"

#include <algorithm>
#include <numeric>

#include "base/net/socket.h"
#include "base/text.h"

namespace slime {
namespace {

tl::unexpected<Error> bad(const std::string& text, const std::string& why) {
  return fail(Status::kConfig,
              "NCCL_SLIME_SWITCH, the control channels of the switches: \"%s\" %s; give it as "
              "host:port, or host:port*weight,host:port*weight,...",
              text.c_str(), why.c_str());
}

// host:port, or host:port*weight.
Result<NamedSwitch> parse_switch(const std::string& text) {
  NamedSwitch named;
  const size_t star = text.find('*');
  if (star != std::string::npos) {
    const auto weight = parse_whole<uint32_t>(std::string_view(text).substr(star + 1));
    if (!weight || *weight < 1 || *weight > kMaxSwitchWeight) {
      return bad(text,
                 "has a weight that is no number from 1 to " + std::to_string(kMaxSwitchWeight));
    }
    named.weight = *weight;
  }
  const std::string host = text.substr(0, star);
  if (host.empty()) return bad(text, "names no host");
  auto address =
      resolve(host, control::kDefaultPort, "NCCL_SLIME_SWITCH, the control channel of a switch");
  if (!address) return fail(std::move(address.error()));
  named.control = *address;
  return named;
}

}  // namespace

Result<std::vector<NamedSwitch>> parse_switches(const std::string& text) {
  std::vector<NamedSwitch> all;
  for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = text.find(',', at);
    const std::string one = text.substr(at, end == std::string::npos ? end : end - at);
    auto named = parse_switch(one);
    if (!named) return fail(std::move(named.error()));
    for (const NamedSwitch& other : all) {
      if (other.control == named->control) return bad(text, "names " + one + " twice");
      if (other.control.family() != named->control.family()) {
        return bad(text, "names switches of both IP versions");
      }
    }
    all.push_back(*named);
  }
  if (all.size() > kMaxSwitches) {
    return bad(text, "names " + std::to_string(all.size()) + " switches, and " +
                         std::to_string(kMaxSwitches) + " are the most");
  }
  return all;
}

void Spread::change(uint64_t first, const PerSwitch& weights) {
  if (!changes_.empty() && changes_.back().first == first) changes_.pop_back();
  changes_.push_back({first, weights});
}

Spread::PerSwitch Spread::cut(uint64_t chunks) {
  while (changes_.size() > 1 && changes_[1].first <= operations_) changes_.pop_front();
  const PerSwitch& weights = changes_.front().weights;
  const uint64_t turn = std::reduce(weights.begin(), weights.end());
  PerSwitch parts{};
  uint64_t low = 0;
  for (uint32_t i = 0; i < kMaxSwitches; ++i) {
    // Of the first n chunks, those whose place in their turn is one of this switch's.
    const auto before = [&](uint64_t n) {
      const uint64_t place = n % turn;
      return n / turn * weights[i] + std::clamp(place, low, low + weights[i]) - low;
    };
    parts[i] = before(chunks_ + chunks) - before(chunks_);
    low += weights[i];
  }
  ++operations_;
  chunks_ += chunks;
  return parts;
}

}  // namespace slime
