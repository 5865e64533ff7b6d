#include "rendezvous/messages.h"

#include <algorithm>
#include <cstring>

namespace slime::rendezvous {

const char* fault_of(std::span<const std::byte> begun, MessageType type) {
  const Prefix wanted{.type = type};
  const auto differs = [&](size_t bytes) {
    bytes = std::min(bytes, begun.size());
    return !std::ranges::equal(begun.first(bytes), bytes_of(wanted).first(bytes));
  };
  if (differs(offsetof(Prefix, version))) return "it speaks another protocol";
  if (differs(offsetof(Prefix, type))) return kOtherVersion;
  return differs(sizeof wanted) ? "it sent a message out of order" : nullptr;
}

std::vector<std::byte> pack_blobs(std::span<const std::string> blobs) {
  std::vector<std::byte> content;
  for (const std::string& blob : blobs) {
    const auto bytes = static_cast<uint32_t>(blob.size());
    for (const auto part : {bytes_of(bytes), bytes_of(blob)}) {
      content.insert(content.end(), part.begin(), part.end());
    }
  }
  return content;
}

std::optional<std::vector<std::string>> unpack_blobs(std::span<const std::byte> content,
                                                     uint32_t ranks) {
  std::vector<std::string> blobs;
  uint32_t bytes = 0;
  while (blobs.size() < ranks) {
    if (content.size() < sizeof bytes) return {};
    std::memcpy(&bytes, content.data(), sizeof bytes);
    content = content.subspan(sizeof bytes);
    if (bytes > std::min(content.size(), kMaxBlobBytes)) return {};
    blobs.emplace_back(reinterpret_cast<const char*>(content.data()), bytes);
    content = content.subspan(bytes);
  }
  if (!content.empty()) return {};
  return blobs;
}

Result<Mac> Signer::sign(MessageType type, std::span<const std::byte> message) const {
  if (key.empty()) return Mac{};
  std::vector<std::byte> text{static_cast<std::byte>(type)};
  text.insert(text.end(), host.begin(), host.end());
  text.insert(text.end(), member.begin(), member.end());
  text.insert(text.end(), message.begin(), message.end());
  return hmac_sha256(key, text);
}

Result<void> Signer::check(MessageType type, std::span<const std::byte> message, const Mac& mac,
                           const std::string& who) const {
  if (key.empty()) return {};
  auto wanted = sign(type, message);
  auto same = wanted ? same_mac(*wanted, mac) : Result<bool>(fail(std::move(wanted.error())));
  if (!same) return fail(std::move(same.error()));
  if (*same) return {};
  return fail(Status::kRemote,
              "%s does not have our key: give all ranks the same NCCL_SLIME_SWITCH_KEY_FILE",
              who.c_str());
}

}  // namespace slime::rendezvous
