#include "tools/perf/buffer.h"

#include <sys/mman.h>

#include <cerrno>

namespace slime::perf {

Result<Buffer> Buffer::allocate(size_t bytes) {
  Buffer buffer;
  const size_t pages = (bytes + 4095) / 4096 * 4096;
  void* data = mmap(nullptr, pages > 0 ? pages : 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return fail(system_error(errno, "cannot allocate %zu bytes; choose a smaller -e", pages));
  }
  buffer.data_ = static_cast<char*>(data);
  buffer.bytes_ = pages > 0 ? pages : 4096;
  // Fewer page-table walks in the kernel's copies; a refusal costs nothing but speed.
  (void)madvise(data, buffer.bytes_, MADV_HUGEPAGE);
  return buffer;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace slime::perf
