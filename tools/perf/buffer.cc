#include "tools/perf/buffer.h"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/process.h"
#include "tools/common/bytes.h"

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

namespace {

// Eight bytes each, with NaN, infinities of both signs, denormals and zeros of both signs.
using Patterns = std::array<uint64_t, 5>;
constexpr Patterns kHalf = {0x7e01'0000'7c00'0001, 0x0000'fc00'0000'7c00, 0xfe55'03ff'0000'8000, 0,
                            0x0001'0001'7dff'0000};
constexpr Patterns kBfloat = {0x7fc1'0000'7f80'0001, 0x0000'ff80'0000'7f80, 0xffd5'007f'0000'8000,
                              0, 0x0001'0001'7f81'0000};
constexpr Patterns kFloat = {0x7fc0'0001'0000'0000, 0x7f80'0000'0000'0001, 0xff80'0000'8000'0000, 0,
                             0x007f'ffff'ffd5'5555};
constexpr Patterns kDouble = {0x7ff8'0000'0000'0001, 0x7ff0'0000'0000'0000, 0xfff0'0000'0000'0000,
                              0, 0x0000'0000'0000'0001};

const Patterns* patterns_of(DataType type) {
  switch (type) {
    case DataType::kHalf:
      return &kHalf;
    case DataType::kBfloat16:
      return &kBfloat;
    case DataType::kFloat:
      return &kFloat;
    case DataType::kDouble:
      return &kDouble;
    default:
      return nullptr;
  }
}

}  // namespace

void fill_garbage(DataType type, int rank, bool wild, std::span<char> memory) {
  const Patterns* const patterns = wild ? nullptr : patterns_of(type);
  uint64_t state = static_cast<uint64_t>(rank) + 1;
  for (size_t offset = 0; offset + sizeof state <= memory.size(); offset += sizeof state) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX
    uint64_t bits = state ^ state >> 29;
    if (patterns != nullptr) bits = (*patterns)[(state >> 33) % patterns->size()];
    std::memcpy(memory.data() + offset, &bits, sizeof bits);
  }
}

}  // namespace slime::perf
