#include "tools/perf/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "tools/common/bytes.h"
#include "base/resources.h"

namespace slime::perf {

Result<Buffer> Buffer::allocate(size_t bytes, const char* what) {
  Buffer buffer;
  const size_t pages = (bytes + 4095) / 4096 * 4096;
  void* data = mmap(nullptr, pages > 0 ? pages : 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    const int code = errno;
    const std::string limit = memory_limit();
    Error error =
        system_error(code, "out of memory: %s for %s%s%s; choose a smaller -e%s",
                     tools::format_bytes(pages).c_str(), what, limit.empty() ? "" : ", and ",
                     limit.c_str(), limit.empty() ? "" : " or raise ulimit -v");
    error.status = Status::kNoMemory;
    return fail(std::move(error));
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
