#include "aggregation/rendezvous_wire.h"

#include <vector>

namespace slime::aggregation {

Result<Mac> sign(const Seal& seal, MessageType type, std::span<const std::byte> message) {
  if (seal.key.empty()) return Mac{};
  std::vector<std::byte> text{static_cast<std::byte>(type)};
  text.insert(text.end(), seal.host.begin(), seal.host.end());
  text.insert(text.end(), seal.guest.begin(), seal.guest.end());
  text.insert(text.end(), message.begin(), message.end());
  return hmac_sha256(seal.key, text);
}

Result<bool> proves(const Seal& seal, MessageType type, std::span<const std::byte> message,
                    const Mac& mac) {
  if (seal.key.empty()) return true;
  auto wanted = sign(seal, type, message);
  if (!wanted) return fail(std::move(wanted.error()));
  return same_mac(*wanted, mac);
}

}  // namespace slime::aggregation
