#include "engine/setup/rail_description.h"

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

// A peer that does not know its speed sends 0.
uint32_t common_speed_mbps(const RailDescription& own, const RailDescription& peer) {
  return peer.speed_mbps == 0 ? own.speed_mbps : std::min(own.speed_mbps, peer.speed_mbps);
}

std::string printable_field(std::span<const char> text) {
  return printable({text.data(), strnlen(text.data(), text.size())});
}

}  // namespace slime
