// A block of memory for protocol records that is registered on all rails of a device.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "devices/device.h"

namespace slime {

class RegisteredBuffer {
 public:
  RegisteredBuffer() = default;
  RegisteredBuffer(RegisteredBuffer&& other) noexcept
      : device_(other.device_), bytes_(std::move(other.bytes_)) {
    region_ = other.region_;
    other.region_ = nullptr;
  }
  RegisteredBuffer& operator=(RegisteredBuffer&&) = delete;
  ~RegisteredBuffer() {
    if (region_) device_->memory().release(region_);
  }

  // The block is zeroed, so that a record which was never written reads as zeros. The kernel zeroes
  // a large block page by page, as it is used. A small block is not mapped, because the kernel
  // stops all threads to unmap it.
  static Result<RegisteredBuffer> make(Device& device, size_t bytes) {
    RegisteredBuffer buffer;
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const pages = allocate(rounded);
    if (pages == nullptr) {
      return fail(make_error(Status::kNoMemory, errno,
                             "device %s: no memory for %zu bytes of protocol records",
                             device.properties().name.c_str(), rounded));
    }
    buffer.bytes_ = Bytes(static_cast<std::byte*>(pages), Free{rounded});
    auto region = device.memory().acquire({buffer.bytes_.get(), rounded});
    if (!region) return fail(region.error());
    buffer.device_ = &device;
    buffer.region_ = *region;
    return buffer;
  }

  std::byte* data() const { return bytes_.get(); }
  const MemoryRegion* region() const { return region_; }

 private:
  // The block has whole pages of its own: memory registered with a NIC must not share a page with
  // memory that a forked child may write (man ibv_fork_init).
  static constexpr size_t kAlignment = 4096;
  static constexpr size_t kLarge = 256 << 10;

  static void* allocate(size_t bytes) {
    if (bytes < kLarge) {
      void* const block = std::aligned_alloc(kAlignment, bytes);
      return block == nullptr ? nullptr : std::memset(block, 0, bytes);
    }
    void* const pages =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : pages;
  }
  struct Free {
    size_t bytes;
    void operator()(std::byte* p) const {
      if (bytes < kLarge) {
        std::free(p);
      } else {
        ::munmap(p, bytes);
      }
    }
  };
  using Bytes = std::unique_ptr<std::byte, Free>;

  Device* device_ = nullptr;
  Bytes bytes_;
  const MemoryRegion* region_ = nullptr;
};

}  // namespace slime
