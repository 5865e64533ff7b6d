#include "collnet/comm/switches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/net/host.h"

namespace slime {
namespace {

// Resolvers give the addresses of a name in any order, so the lowest one stands for the switch.
NamedSwitch named_switch(Addresses found, sa_family_t family, uint32_t weight) {
  const auto is_other = [&](const SocketAddress& one) { return one.family() != family; };
  if (!std::ranges::all_of(found, is_other)) std::erase_if(found, is_other);
  const SocketAddress lowest = *std::ranges::min_element(found, {}, &SocketAddress::pack);
  return {lowest, weight, std::move(found)};
}

}  // namespace

Result<std::vector<NamedSwitch>> parse_switches(const std::string& text, sa_family_t family,
                                                const Deadline& limit) {
  const auto listed = split_switches(text);
  if (!listed) return fail(listed.error());
  std::vector<NamedSwitch> all;
  for (const ListedSwitch& one : *listed) {
    auto control = resolve(one.where, "NCCL_SLIME_SWITCH, the control channel of a switch", limit);
    if (!control) return fail(std::move(control.error()));
    const NamedSwitch named = named_switch(std::move(*control), family, one.weight);
    for (const NamedSwitch& other : all) {
      if (other.control == named.control) return bad_switches(text, "names " + one.text + " twice");
      if (other.control.family() != named.control.family()) {
        return bad_switches(text, "names switches of both IP versions");
      }
    }
    all.push_back(named);
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
