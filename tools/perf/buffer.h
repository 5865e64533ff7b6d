// Page-aligned host memory, for the user's buffers and the FIFOs.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>

#include "base/error.h"

namespace slime::perf {

// States: empty -> allocated, until it ends.
class Buffer {
 public:
  // `what` it is for: "the send buffer". Whole pages, all zero.
  Result<void> allocate(size_t bytes, const char* what);

  char* data() const { return data_.get(); }
  size_t size() const { return data_.get_deleter().bytes; }

 private:
  struct Unmap {
    void operator()(char* data) const { munmap(data, bytes); }
    size_t bytes;
  };
  std::unique_ptr<char, Unmap> data_;
};

}  // namespace slime::perf
