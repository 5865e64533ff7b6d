// What stands for the memory of a GPU in tests of several backends.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "transports/rail.h"

namespace slime::test {

// A DMA-BUF: addresses that nobody but a NIC can use, and a file for what is there.
class DeviceMemory {
 public:
  static constexpr size_t kBytes = 4 * 4'096;

  DeviceMemory() : fd_(::memfd_create("device", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::ftruncate(fd_, kBytes) != 0) std::abort();
    void* const nowhere =
        ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (nowhere == MAP_FAILED) std::abort();
    address_ = static_cast<std::byte*>(nowhere);
  }
  ~DeviceMemory() {
    close_file();
    (void)::munmap(address_, kBytes);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void close_file() {
    if (fd_ >= 0) (void)::close(fd_);
    fd_ = -1;
  }
  MemoryRange range(size_t offset = 0, size_t bytes = kBytes) const {
    return {address_ + offset, bytes, MemoryKind::kCuda, fd_, offset};
  }
  void fill(size_t offset, const std::vector<std::byte>& bytes) const {
    EXPECT_EQ(::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
  }
  std::vector<std::byte> read(size_t offset, size_t bytes) const {
    std::vector<std::byte> there(bytes);
    EXPECT_EQ(::pread(fd_, there.data(), bytes, static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes));
    return there;
  }

 private:
  int fd_;
  std::byte* address_;
};

inline Work work_between(const MemoryRange& from, const MemoryKeys& from_keys,
                         const MemoryRange& to, const MemoryKeys& to_keys) {
  Work work;
  work.local = static_cast<const std::byte*>(from.address);
  work.local_key = from_keys.local;
  work.remote_address = reinterpret_cast<uint64_t>(to.address);
  work.remote_key = to_keys.remote;
  work.length = static_cast<uint32_t>(from.bytes);
  return work;
}

}  // namespace slime::test
