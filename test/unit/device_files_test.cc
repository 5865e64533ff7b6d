// What a forked child has of a device file, for which a file of any other kind stands.
#include "base/device_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "test/support/temporary_directory.h"
#include "test/unit/forked.h"

namespace slime {
namespace {

constexpr size_t kBytes = 4096;

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }
bool is_mapped(void* memory) {
  unsigned char in_memory = 0;
  return mincore(memory, kBytes, &in_memory) == 0;
}

class DeviceFiles : public ::testing::Test {
 protected:
  // Opens and maps a file as a library would.
  explicit DeviceFiles(const char* name = "uverbs0") : path_(directory_.path() / name) {
    std::ofstream(path_) << std::string(kBytes, 'x');
    fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    memory_ = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd_, 0);
  }
  ~DeviceFiles() override {
    munmap(memory_, kBytes);
    close(fd_);
  }

  const test::TemporaryDirectory directory_;
  const std::filesystem::path path_;
  int fd_ = -1;
  void* memory_ = MAP_FAILED;
};

TEST_F(DeviceFiles, AForkedChildHasNeitherDescriptorNorMapping) {
  ASSERT_NE(memory_, MAP_FAILED);
  EXPECT_TRUE(test::in_child([&] { return is_open(fd_) && is_mapped(memory_); })) << "else it has";
  keep_from_children(path_);
  const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const auto is_kept = [&] { return !is_open(fd_) && !is_mapped(memory_) && is_open(other); };
  EXPECT_TRUE(test::in_child(is_kept));
  EXPECT_TRUE(test::in_child([&] { return is_kept() && test::in_child(is_kept); }));
  EXPECT_TRUE(is_open(fd_) && is_mapped(memory_)) << "the parent goes on";
  close(other);
}

TEST_F(DeviceFiles, WhatIsOpenedLaterIsKeptToo) {
  keep_from_children(path_);
  const int later = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(test::in_child([&] { return !is_open(later); }));
  close(later);
}

TEST_F(DeviceFiles, TheFileOfAnRdmaDeviceIsFoundByItsName) {
  const auto verbs = directory_.path() / "class/infiniband_verbs";
  for (const char* name : {"uverbs0", "uverbs1"}) {
    std::filesystem::create_directories(verbs / name);
    std::ofstream(verbs / name / "ibdev") << "mlx5_" << name[6] << "\n";
  }
  EXPECT_EQ(rdma_device_file("mlx5_1", directory_.path()), "/dev/infiniband/uverbs1");
  EXPECT_EQ(rdma_device_file("eth0", directory_.path()), "");
  EXPECT_EQ(rdma_device_file("mlx5_0", directory_.path() / "none"), "");
}

}  // namespace
}  // namespace slime
