// What stands for the memory of a GPU in tests of several backends, and the flusher of a rail.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "test/support/test_buffer.h"
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

// The flusher of the left rail of a backend's TestNics.
template <typename Nics>
struct LeftFlusher {
  template <typename... Arguments>
  explicit LeftFlusher(const Arguments&... arguments) : world(arguments...) {
    auto opened = world.left->open_flusher();
    if (!opened || !*opened) std::abort();
    flusher = std::move(*opened);
  }
  virtual ~LeftFlusher() = default;

  virtual Status begin() = 0;
  Status poll() { return flusher->poll(&completed); }
  // Until so many reads are complete.
  bool await(uint64_t count) {
    return eventually([&] {
             world.settle();
             return poll() != Status::kOk || completed >= count;
           }) &&
           completed == count;
  }
  std::string failure() {
    EXPECT_TRUE(eventually([&] {
      world.settle();
      return poll() != Status::kOk;
    }));
    EXPECT_NE(begin(), Status::kOk) << "it stays so";
    return flusher->failure().what;
  }

  Nics world;
  std::unique_ptr<Flusher> flusher;
  uint64_t completed = 0;
};

}  // namespace slime::test
