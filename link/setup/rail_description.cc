#include "link/setup/rail_description.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace slime {
namespace {

template <size_t N>
void put(const std::string& text, std::array<char, N>* to) {
  std::memcpy(to->data(), text.data(), std::min(text.size(), N));
}

RailDescription description_of(const RailCaps& caps) {
  RailDescription rail;
  put(caps.name, &rail.name);
  put(caps.transport, &rail.backend);
  put(caps.link_layer, &rail.link_layer);
  put(caps.fabric, &rail.fabric);
  put(caps.subnet, &rail.subnet);
  rail.mtu = caps.mtu;
  rail.speed_mbps = caps.speed_mbps;
  return rail;
}

std::string describe(const RailDescription& rail) {
  std::string text = printable_field(rail.name) + " (" + printable_field(rail.backend);
  if (rail.link_layer[0] != 0) text += ", " + printable_field(rail.link_layer);
  if (rail.fabric[0] != 0) text += ", fabric " + printable_field(rail.fabric);
  if (rail.mtu != 0) text += ", MTU " + std::to_string(rail.mtu);
  return text + ")";
}

// Bytes behind the end of a text do not count.
template <size_t N>
bool same(const std::array<char, N>& own, const std::array<char, N>& peer) {
  return std::strncmp(own.data(), peer.data(), N) == 0;
}

// An empty text matches any other.
template <size_t N>
bool differ(const std::array<char, N>& own, const std::array<char, N>& peer) {
  return own[0] != 0 && peer[0] != 0 && !same(own, peer);
}

const char* difference(const RailDescription& own, const RailDescription& peer) {
  if (!same(own.backend, peer.backend)) return "they are of different transports";
  if (differ(own.link_layer, peer.link_layer)) return "their link layers differ";
  if (differ(own.fabric, peer.fabric)) return "they are on different fabrics";
  return nullptr;
}

bool meet(const RailDescription& a, const RailDescription& b) {
  return difference(a, b) == nullptr && same(a.subnet, b.subnet);
}

}  // namespace

RailDescriptions describe_rails(std::span<Rail* const> rails) {
  RailDescriptions descriptions;
  for (const Rail* rail : rails)
    descriptions.all[descriptions.count++] = description_of(rail->caps());
  return descriptions;
}

Result<void> check_fit(const RailOfHost& own, const RailOfHost& peer) {
  const char* const why = difference(own.rail, peer.rail);
  if (why == nullptr) return {};
  return fail(make_error(
      Status::kConfig, 0,
      "rail %s of %s cannot be paired with rail %s of %s: %s; choose rails of one "
      "kind on all hosts with NCCL_SLIME_TRANSPORTS, NCCL_SLIME_HCA and NCCL_SLIME_IFNAME",
      describe(own.rail).c_str(), own.host.c_str(), describe(peer.rail).c_str(), peer.host.c_str(),
      why));
}

std::vector<RailPair> pair_rails(const RailDescriptions& active, const RailDescriptions& passive) {
  const bool more_active = active.count >= passive.count;
  const RailDescriptions &more = more_active ? active : passive,
                         &fewer = more_active ? passive : active;
  std::vector<RailPair> pairs(more.count);
  std::vector<bool> paired(more.count);
  std::array<uint32_t, kMaxRails> uses = {};
  // Each of the fewer is used so often, and so many of them once more.
  const uint32_t each = more.count / fewer.count;
  uint32_t once_more = more.count % fewer.count;
  const auto pair_up = [&](bool in_one_subnet) {
    for (uint32_t i = 0; i < more.count; ++i) {
      uint32_t best = fewer.count;
      for (uint32_t k = 0; k < fewer.count && !paired[i]; ++k) {
        const uint32_t other = (i + k) % fewer.count;  // its own number first
        if (uses[other] == each + (once_more > 0 ? 1 : 0)) continue;
        if (in_one_subnet && !meet(more.all[i], fewer.all[other])) continue;
        if (best == fewer.count || uses[other] < uses[best]) best = other;
      }
      if (best == fewer.count) continue;
      if (++uses[best] > each) --once_more;
      paired[i] = true;
      const auto one = static_cast<uint8_t>(i), other = static_cast<uint8_t>(best);
      pairs[i] = more_active ? RailPair{one, other} : RailPair{other, one};
    }
  };
  pair_up(true);
  pair_up(false);
  return pairs;
}

// A peer that does not know its speed sends 0.
uint32_t common_speed_mbps(const RailDescription& own, const RailDescription& peer) {
  return peer.speed_mbps == 0 ? own.speed_mbps : std::min(own.speed_mbps, peer.speed_mbps);
}

std::string printable_field(std::span<const char> text) {
  return printable({text.data(), strnlen(text.data(), text.size())});
}

}  // namespace slime
