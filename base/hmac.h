// Message authentication with HMAC-SHA256 (RFC 2104). OpenSSL's libcrypto computes it. The library
// is loaded when the first key is used, so a host without keys does not need it.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace slime {

using Mac = std::array<std::byte, 32>;

// A key that two programs share. The destructor wipes its bytes.
class SecretKey {
 public:
  // RFC 2104, 3, advises 32 bytes, the length of the hash; we require half of that.
  static constexpr size_t kMinBytes = 16, kMaxBytes = 256;

  SecretKey() = default;  // no key
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();
  static Result<SecretKey> from_bytes(std::span<const std::byte> bytes);
  // The key is the bytes of the file, without spaces and line ends at the end. The file must be one
  // that nobody else can choose or read (base/key_file.h).
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

// Fails if libcrypto is missing. Call it early, so that the user gets the error early.
Result<void> load_hmac();

Result<Mac> hmac_sha256(const SecretKey& key, std::span<const std::byte> message);
// Compares in a time that does not depend on where they differ.
Result<bool> same_mac(const Mac& left, const Mac& right);

}  // namespace slime
