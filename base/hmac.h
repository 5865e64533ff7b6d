// Message authentication with HMAC-SHA256 (RFC 2104). The computation is OpenSSL's: its libcrypto
// is loaded when the first key is used, so that nobody needs it who has no key.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace slime {

using Mac = std::array<std::byte, 32>;

// A key that two programs share. Copies are wiped when they go.
class SecretKey {
 public:
  // RFC 2104, 3, advises 32 bytes, the length of the hash; half of that is the least we take.
  static constexpr size_t kMinBytes = 16, kMaxBytes = 256;

  SecretKey() = default;  // no key
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();
  static Result<SecretKey> from_bytes(std::span<const std::byte> bytes);
  // The file's bytes as they are, without spaces and line ends at the end. The file is root's or
  // this user's own, and nobody but the owner and those in its group may read it.
  static Result<SecretKey> read_file(const std::string& path);

  bool empty() const { return size_ == 0; }
  bool operator==(const SecretKey& other) const {
    return std::ranges::equal(bytes(), other.bytes());
  }
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  std::array<std::byte, kMaxBytes> bytes_{};
  size_t size_ = 0;
};

// Fails where libcrypto is missing: ask once, early, to tell the user in good time.
Result<void> load_hmac();

Result<Mac> hmac_sha256(const SecretKey& key, std::span<const std::byte> message);
// In a time that does not depend on where they differ.
Result<bool> same_mac(const Mac& left, const Mac& right);

}  // namespace slime
