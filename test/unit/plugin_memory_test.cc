// regMr and regMrDmaBuf on devices that take a GPU's memory as a DMA-BUF only, as NICs do without
// the module nvidia_peermem.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "plugin/net.h"
#include "plugin/state.h"
#include "test/support/fake_rail.h"

namespace slime::plugin {
namespace {

using test::FakeRail;
using testing::HasSubstr;

// A sendComm of one device, as far as registration looks at it.
class PluginMemory : public testing::Test {
 protected:
  void open(bool dma_buf) {
    RailCaps caps = test::fake_caps("nic0");
    caps.dma_buf = dma_buf;
    std::vector<std::unique_ptr<Rail>> rails;
    auto rail = std::make_unique<FakeRail>(caps);
    rail_ = rail.get();
    rails.push_back(std::move(rail));
    devices_ = Devices::of_rails(std::move(rails), Settings(), SteadyClock::instance());
    comm_ = State::get().adopt(std::make_unique<OpenComm>(CommKind::kSend, devices_->device(0), 0));
  }
  ~PluginMemory() override { (void)State::get().close(comm_, CommKind::kSend); }

  std::unique_ptr<Devices> devices_;
  FakeRail* rail_ = nullptr;
  void* comm_ = nullptr;
  std::byte memory_[4'096];
  void* mhandle_ = nullptr;
};

TEST_F(PluginMemory, ADmaBufOfTheGpuReachesTheRail) {
  open(true);
  const auto made =
      register_dma_buf(comm_, memory_, sizeof memory_, nccl::kPointerCuda, 8'192, 7, &mhandle_);
  ASSERT_TRUE(made) << made.error().what;
  ASSERT_EQ(rail_->registered.size(), 1u);
  const MemoryRange& range = rail_->registered.begin()->second;
  EXPECT_EQ(range.kind, MemoryKind::kCuda);
  EXPECT_EQ(range.address, memory_);
  EXPECT_EQ(range.bytes, sizeof memory_);
  EXPECT_EQ(range.dma_buf, 7);
  EXPECT_EQ(range.dma_buf_offset, 8'192u);
  EXPECT_TRUE(deregister_memory(comm_, mhandle_));
  EXPECT_TRUE(rail_->registered.empty());
}

TEST_F(PluginMemory, ByItsAddressTheGpusMemoryIsRefusedByName) {
  open(true);
  const auto made = register_memory(comm_, memory_, sizeof memory_, nccl::kPointerCuda, &mhandle_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, Status::kUnsupported);
  EXPECT_THAT(made.error().what, HasSubstr("device nic0 cannot register CUDA memory"));
  EXPECT_TRUE(rail_->registered.empty());
  EXPECT_EQ(mhandle_, nullptr);
}

TEST_F(PluginMemory, HostMemoryIsRegisteredByItsAddress) {
  open(true);
  const auto made = register_memory(comm_, memory_, sizeof memory_, nccl::kPointerHost, &mhandle_);
  ASSERT_TRUE(made) << made.error().what;
  ASSERT_EQ(rail_->registered.size(), 1u);
  EXPECT_EQ(rail_->registered.begin()->second.kind, MemoryKind::kHost);
  EXPECT_TRUE(deregister_memory(comm_, mhandle_));
}

TEST_F(PluginMemory, WithoutDmaBufsRegMrDmaBufIsRefusedByName) {
  open(false);
  const auto made =
      register_dma_buf(comm_, memory_, sizeof memory_, nccl::kPointerCuda, 0, 7, &mhandle_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().status, Status::kUnsupported);
  EXPECT_THAT(made.error().what, HasSubstr("device nic0 cannot register DMA-BUF 7"));
  EXPECT_THAT(made.error().what, HasSubstr("use regMr"));
}

TEST_F(PluginMemory, WhatIsNoDescriptorIsRefusedByName) {
  open(true);
  const auto made =
      register_dma_buf(comm_, memory_, sizeof memory_, nccl::kPointerCuda, 0, -1, &mhandle_);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().what, HasSubstr("that is no file descriptor"));
}

}  // namespace
}  // namespace slime::plugin
