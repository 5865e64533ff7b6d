#include "tools/perf/buffer.h"

#include <algorithm>
#include <cerrno>

#include "base/process.h"
#include "tools/common/bytes.h"

namespace slime::perf {

Result<void> Buffer::allocate(size_t bytes, const char* what) {
  const size_t pages = (std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096;
  void* const data =
      mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
  // Fewer page-table walks in the kernel's copies; a refusal costs nothing but speed.
  (void)madvise(data, pages, MADV_HUGEPAGE);
  data_ = std::unique_ptr<char, Unmap>(static_cast<char*>(data), Unmap{pages});
  return {};
}

}  // namespace slime::perf
