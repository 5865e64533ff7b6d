// Page-aligned host memory.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/error.h"
#include "tools/perf/words.h"

namespace slime::perf {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer();

  // `what` it is for: "the send buffer".
  static Result<Buffer> allocate(size_t bytes, const char* what);

  char* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

// What earlier operations, of any type, may have left in a FIFO.
// Other values at each rank. Integers: any bits. Floating point: NaN, infinities, denormals and
// zeros; with `wild` any bits, so numbers far larger than the user's too. Those share an exponent
// with the user's last elements where a network adds in blocks, and take their precision.
void fill_garbage(DataType type, int rank, bool wild, std::span<char> memory);

}  // namespace slime::perf
