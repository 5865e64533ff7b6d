// Page-aligned host memory.
#pragma once

#include <cstddef>
#include <utility>

#include "base/error.h"

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

}  // namespace slime::perf
