// HMAC-SHA256 by libcrypto, which is loaded by name: the plugin may link only the C and C++
// libraries (CONTRIBUTING.md). If the process has loaded OpenSSL already, this uses the same copy.
#include "base/hmac.h"

#include <algorithm>
#include <cstring>

#include "base/key_file.h"
#include "base/library.h"

namespace slime {
namespace {

// From <openssl/hmac.h>, <openssl/evp.h> and <openssl/crypto.h>; the same in 1.1 and 3. The
// one-call form is the part of HMAC(3) that OpenSSL 3.0 did not deprecate.
struct Libcrypto {
  const void* (*evp_sha256)() = nullptr;
  unsigned char* (*hmac)(const void* md, const void* key, int key_bytes, const unsigned char* data,
                         size_t data_bytes, unsigned char* to, unsigned int* to_bytes) = nullptr;
  int (*memcmp)(const void* left, const void* right, size_t bytes) = nullptr;
  std::string missing;  // empty: all there
};

template <typename Function>
void find(void* library, const char* name, Function* function, std::string* missing) {
  if (!find_function(library, name, function)) *missing = std::string("libcrypto has no ") + name;
}

// Tries OpenSSL 3 first, then 1.1. If neither can be loaded, `missing` has the error about 3.
Libcrypto load() {
  Libcrypto table;
  auto library = load_library("libcrypto.so.3");
  if (!library) {
    table.missing = library.error().what;
    library = load_library("libcrypto.so.1.1");
  }
  if (!library) return table;
  table.missing.clear();
  find(*library, "EVP_sha256", &table.evp_sha256, &table.missing);
  find(*library, "HMAC", &table.hmac, &table.missing);
  find(*library, "CRYPTO_memcmp", &table.memcmp, &table.missing);
  return table;  // never closed: OpenSSL has handlers that run at exit
}

const Libcrypto& libcrypto() {
  static const Libcrypto table = load();
  return table;
}

const unsigned char* unsigned_bytes(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

bool is_space(std::byte byte) {
  const auto c = static_cast<char>(byte);
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

}  // namespace

SecretKey::~SecretKey() { explicit_bzero(bytes_.data(), bytes_.size()); }

Result<SecretKey> SecretKey::from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < kMinBytes || bytes.size() > kMaxBytes) {
    return fail(make_error(Status::kConfig, 0,
                           "a key has %zu to %zu bytes, not %zu; make one with: openssl rand "
                           "-hex 32",
                           kMinBytes, kMaxBytes, bytes.size()));
  }
  SecretKey key;
  std::ranges::copy(bytes, key.bytes_.begin());
  key.size_ = bytes.size();
  return key;
}

// The copy on the stack is wiped too.
Result<SecretKey> SecretKey::read_file(const std::string& path) {
  std::array<std::byte, kMaxBytes + 64> room;  // some line ends more than the longest key
  const auto read = read_key_file(path, room);
  if (!read) return fail(read.error());
  size_t size = *read;
  while (size > 0 && is_space(room[size - 1])) --size;
  auto key = from_bytes({room.data(), size});
  explicit_bzero(room.data(), room.size());
  if (!key) key.error().what = "key file " + path + ": " + key.error().what;
  return key;
}

Result<void> load_hmac() {
  const std::string& missing = libcrypto().missing;
  if (missing.empty()) return {};
  return fail(make_error(Status::kConfig, 0,
                         "a key is configured, and OpenSSL's libcrypto cannot be used: %s; "
                         "install OpenSSL 3 (Debian: libssl3), or configure no key",
                         missing.c_str()));
}

Result<Mac> hmac_sha256(const SecretKey& key, std::span<const std::byte> message) {
  if (auto loaded = load_hmac(); !loaded) return fail(std::move(loaded.error()));
  const Libcrypto& crypto = libcrypto();
  Mac mac{};
  unsigned int bytes = 0;
  if (key.empty() ||
      crypto.hmac(crypto.evp_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()),
                  unsigned_bytes(message.data()), message.size(),
                  reinterpret_cast<unsigned char*>(mac.data()), &bytes) == nullptr ||
      bytes != mac.size()) {
    return fail(make_error(Status::kSystem, 0,
                           "HMAC-SHA256 of %zu bytes with a key of %zu failed in libcrypto (is "
                           "SHA-256 disabled in its configuration?)",
                           message.size(), key.bytes().size()));
  }
  return mac;
}

Result<bool> same_mac(const Mac& left, const Mac& right) {
  if (auto loaded = load_hmac(); !loaded) return fail(std::move(loaded.error()));
  return libcrypto().memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace slime
