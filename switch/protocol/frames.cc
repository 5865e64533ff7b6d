#include "switch/protocol/frames.h"

#include <algorithm>

namespace slime::control {

Result<Mac> Signer::mac_of(Direction direction, std::span<const std::byte> signed_part) const {
  std::vector<std::byte> message;
  message.reserve(1 + 2 * sizeof(Nonce) + kMaxTenantBytes + signed_part.size());
  message.push_back(static_cast<std::byte>(direction));
  message.insert(message.end(), client_.begin(), client_.end());
  message.insert(message.end(), server_.begin(), server_.end());
  for (size_t i = 0; i < kMaxTenantBytes; ++i) {
    message.push_back(static_cast<std::byte>(i < tenant_.size() ? tenant_[i] : '\0'));
  }
  message.insert(message.end(), signed_part.begin(), signed_part.end());
  return hmac_sha256(key_, message);
}

Result<void> Signer::sign(Direction direction, std::span<std::byte> frame) const {
  if (key_.empty()) return {};  // zeros, as encode() left them
  const auto mac = mac_of(direction, frame.first(frame.size() - kMacBytes));
  if (!mac) return fail(mac.error());
  std::ranges::copy(*mac, frame.last(kMacBytes).begin());
  return {};
}

Result<bool> Signer::check(Direction direction, std::span<const std::byte> frame) const {
  const auto found = frame.last(kMacBytes);
  if (key_.empty()) {
    return std::ranges::all_of(found, [](std::byte b) { return b == std::byte{0}; });
  }
  const auto mac = mac_of(direction, frame.first(frame.size() - kMacBytes));
  if (!mac) return fail(mac.error());
  Mac given;
  std::ranges::copy(found, given.begin());
  return same_mac(*mac, given);
}

Status FrameReader::read(const Fd& fd, Error* error) {
  if (done_ < kHeaderBytes) {
    const Status status = receive_message(fd, std::span(bytes_).first(kHeaderBytes), &done_, error);
    if (status != Status::kOk) return status;
    auto header = decode_header(std::span(bytes_).first(kHeaderBytes), max_payload_);
    if (!header) {
      done_ = 0;  // whatever the caller does next, no frame is there
      *error = std::move(header.error());
      return error->status;
    }
    header_ = *header;
    bytes_.resize(kHeaderBytes + header_.payload_bytes + kMacBytes);
  }
  return receive_message(fd, bytes_, &done_, error);
}

void FrameReader::next() {
  bytes_.assign(kHeaderBytes, std::byte{0});
  done_ = 0;
}

}  // namespace slime::control
