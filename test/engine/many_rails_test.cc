// A link of as many rails as there may be: the last one is used, dies, returns, and writes into
// device memory.
#include <gtest/gtest.h>

#include "test/support/sim_hosts.h"

namespace slime::test {
namespace {

constexpr size_t kBytes = 256 << 10;
constexpr size_t kLast = kMaxRails - 1;

Settings many_rails() {
  Settings settings;
  settings.min_stripe = 4096;
  settings.rail_retry = 0.001;
  settings.rails_per_device = kMaxRails;
  return settings;
}

class ManyRails : public ::testing::Test {
 protected:
  ManyRails() {
    require_flushes(to_);
    source_region_ = *from_.device().memory().acquire({source_.data(), kBytes});
    target_region_ = *to_.device().memory().acquire({target_.data(), kBytes, MemoryKind::kCuda});
    link_ = connect(network_, from_, to_, kMaxRails, 0);
  }
  ~ManyRails() override { link_ = {}; }

  void step() {
    EXPECT_EQ(link_.sender->progress(), Status::kOk) << link_.sender->failure().what;
    EXPECT_EQ(link_.receiver->progress(), Status::kOk) << link_.receiver->failure().what;
    network_.advance(5'000);
  }
  bool await_rails(size_t count) {
    for (int i = 0; i < 10'000; ++i) {
      step();
      if (link_.sender->link().rails().up_count() == count &&
          link_.receiver->link().rails().up_count() == count) {
        return true;
      }
    }
    return false;
  }
  void await(Comm& comm, Request* request) {
    bool done = false;
    for (int i = 0; i < 10'000 && !done; ++i) {
      ASSERT_EQ(comm.test(request, &done, nullptr), Status::kOk) << comm.failure().what;
      step();
    }
    ASSERT_TRUE(done);
  }
  // Returns how many works the last rail carried.
  uint64_t transfer(std::byte pattern) {
    const uint64_t before = from_.rails[kLast]->works_posted();
    std::ranges::fill(source_, pattern);
    Request *send = nullptr, *receive = nullptr, *flush = nullptr;
    const Receive wanted{target_.data(), kBytes, 0, target_region_};
    EXPECT_EQ(link_.receiver->irecv({&wanted, 1}, false, &receive), Status::kOk);
    for (int i = 0; i < 1000 && send == nullptr; ++i) {
      EXPECT_EQ(link_.sender->isend(source_.data(), kBytes, 0, source_region_, &send), Status::kOk);
      step();
    }
    await(*link_.receiver, receive);
    await(*link_.sender, send);
    EXPECT_EQ(link_.receiver->flush(target_.data(), target_region_, &flush), Status::kOk);
    await(*link_.receiver, flush);
    EXPECT_EQ(source_, target_);
    return from_.rails[kLast]->works_posted() - before;
  }

  // The memory outlives the rails that it is registered on.
  std::vector<std::byte> source_ = std::vector<std::byte>(kBytes);
  std::vector<std::byte> target_ = std::vector<std::byte>(kBytes);
  sim::Network network_{1};
  SimHost from_{network_, kMaxRails, device_memory_caps(), many_rails(), "a"};
  SimHost to_{network_, kMaxRails, device_memory_caps(), many_rails(), "b"};
  const MemoryRegion *source_region_ = nullptr, *target_region_ = nullptr;
  SimLink link_;
};

TEST_F(ManyRails, TheLastOneIsAsGoodAsTheFirst) {
  EXPECT_GT(transfer(std::byte{1}), 0u);
  from_.rails[kLast]->kill(sim::Death::kNoticed);
  ASSERT_TRUE(await_rails(kMaxRails - 1));
  EXPECT_EQ(transfer(std::byte{2}), 0u);
  from_.rails[kLast]->revive();
  ASSERT_TRUE(await_rails(kMaxRails));
  EXPECT_GT(transfer(std::byte{3}), 0u);
}

// Each of the others gives the rail that is left several works at once.
TEST_F(ManyRails, AllButOneDieAndReturnAtOnce) {
  for (size_t i = 0; i < kLast; ++i) from_.rails[i]->kill(sim::Death::kNoticed);
  ASSERT_TRUE(await_rails(1));
  EXPECT_GT(transfer(std::byte{4}), 0u);
  for (size_t i = 0; i < kLast; ++i) from_.rails[i]->revive();
  ASSERT_TRUE(await_rails(kMaxRails));
  EXPECT_GT(transfer(std::byte{5}), 0u);
}

}  // namespace
}  // namespace slime::test
