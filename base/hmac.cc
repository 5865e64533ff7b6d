// HMAC-SHA256 by libcrypto, which is loaded by name: the plugin may link only the C and C++
// libraries (CONTRIBUTING.md). If the process has loaded OpenSSL already, this uses the same copy.
#include "base/hmac.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

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

// A key that others can read or replace proves nothing. A group may have read access, so that users
// of a cluster can use a key that root owns.
Result<void> check_private(const std::string& path, const struct stat& status) {
  const char* name = path.c_str();
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    return fail(
        make_error(Status::kConfig, 0,
                   "key file %s belongs to user %u, who can change it: chown %u %s, after a "
                   "look at who wrote it (root's files and one's own are taken)",
                   name, status.st_uid, geteuid(), name));
  }
  if ((status.st_mode & (S_IWGRP | S_IRWXO)) != 0) {
    return fail(
        make_error(Status::kConfig, 0,
                   "key file %s has mode %03o, so that others can %s it: chmod 640 %s, or "
                   "600 where no group needs it, and make a new key if strangers had access",
                   name, status.st_mode & 0777,
                   (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "change" : "read", name));
  }
  return {};
}

// Reads at most `room.size()` bytes; *got == room.size() may mean that there are more.
Result<void> read_up_to(const std::string& path, std::span<std::byte> room, size_t* got) {
  // O_NONBLOCK: a pipe of that name must not make us wait.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(system_error(errno, "open key file %s", path.c_str()));
  struct stat status {};
  int code = fstat(fd, &status) == 0 ? (S_ISREG(status.st_mode) ? 0 : EINVAL) : errno;
  *got = 0;
  if (auto sound = code == 0 ? check_private(path, status) : Result<void>{}; !sound) {
    (void)close(fd);
    return sound;
  }
  while (code == 0 && *got < room.size()) {
    const ssize_t moved = read(fd, room.data() + *got, room.size() - *got);
    if (moved == 0) break;
    if (moved > 0) *got += static_cast<size_t>(moved);
    if (moved < 0 && errno != EINTR) code = errno;
  }
  (void)close(fd);
  if (code != 0) {
    return fail(system_error(code, "read key file %s (must be a regular file)", path.c_str()));
  }
  return {};
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
  size_t size = 0;
  if (auto read = read_up_to(path, room, &size); !read) return fail(std::move(read.error()));
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
