#include "engine/rail_card.h"

#include <algorithm>
#include <cstring>

namespace slime {
namespace {

template <size_t N>
void put(const std::string& text, std::array<char, N>* to) {
  std::memcpy(to->data(), text.data(), std::min(text.size(), N));
}

RailCard card_of(const RailCaps& caps) {
  RailCard card;
  put(caps.name, &card.name);
  put(caps.transport, &card.backend);
  put(caps.link_layer, &card.link_layer);
  put(caps.fabric, &card.fabric);
  card.mtu = caps.mtu;
  card.speed_mbps = caps.speed_mbps;
  return card;
}

std::string describe(const RailCard& card) {
  std::string text = printable(card.name) + " (" + printable(card.backend);
  if (card.link_layer[0] != 0) text += ", " + printable(card.link_layer);
  if (card.fabric[0] != 0) text += ", fabric " + printable(card.fabric);
  if (card.mtu != 0) text += ", MTU " + std::to_string(card.mtu);
  return text + ")";
}

// What a peer sends behind the end of its text does not count.
template <size_t N>
bool same(const std::array<char, N>& own, const std::array<char, N>& peer) {
  return std::strncmp(own.data(), peer.data(), N) == 0;
}

template <size_t N>
bool differ(const std::array<char, N>& own, const std::array<char, N>& peer) {
  return own[0] != 0 && peer[0] != 0 && !same(own, peer);
}

const char* difference(const RailCard& own, const RailCard& peer) {
  if (!same(own.backend, peer.backend)) return "they are of different transports";
  if (differ(own.link_layer, peer.link_layer)) return "their link layers differ";
  if (differ(own.fabric, peer.fabric)) return "they are on different fabrics";
  return nullptr;
}

}  // namespace

RailCards cards_of(std::span<Rail* const> rails) {
  RailCards all;
  for (const Rail* rail : rails) all.cards[all.count++] = card_of(rail->caps());
  return all;
}

Result<void> check_fit(const Owned& own, const Owned& peer) {
  const char* const why = difference(own.card, peer.card);
  if (why == nullptr) return {};
  return fail(make_error(
      Status::kConfig, 0,
      "rail %s of %s cannot be paired with rail %s of %s: %s; choose rails of one "
      "kind on all hosts with NCCL_SLIME_TRANSPORTS, NCCL_SLIME_HCA and NCCL_SLIME_IFNAME",
      describe(own.card).c_str(), own.host.c_str(), describe(peer.card).c_str(), peer.host.c_str(),
      why));
}

uint32_t common_speed_mbps(const RailCard& own, const RailCard& peer) {
  return peer.speed_mbps == 0 ? own.speed_mbps : std::min(own.speed_mbps, peer.speed_mbps);
}

std::string printable(std::span<const char> text) {
  std::string shown(text.data(), strnlen(text.data(), text.size()));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

}  // namespace slime
