#include "base/random.h"

#include <sys/random.h>

#include <cerrno>

namespace slime {

Result<void> random_bytes(std::span<std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    // GRND_NONBLOCK: before the kernel's pool is seeded (early boot) getrandom(2) would wait
    // without a limit.
    const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, GRND_NONBLOCK);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error(errno, "getrandom of %zu bytes", bytes.size()));
    done += static_cast<size_t>(got);
  }
  return {};
}

Result<Nonce> random_nonce() {
  Nonce nonce{};
  if (auto filled = random_bytes(nonce); !filled) return fail(std::move(filled.error()));
  return nonce;
}

bool same_nonce(const Nonce& left, const Nonce& right) {
  std::byte difference{0};
  for (size_t i = 0; i < left.size(); ++i) difference |= left[i] ^ right[i];
  return difference == std::byte{0};
}

}  // namespace slime
