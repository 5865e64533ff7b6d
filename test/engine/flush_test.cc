// Device memory at the receiver: simulated rails keep back what arrives there until it is flushed,
// so a rail that iflush forgets shows.
#include <gtest/gtest.h>

#include <deque>

#include "test/support/sim_hosts.h"

namespace slime::test {
namespace {

constexpr size_t kBytes = 96 << 10;
constexpr size_t kMessages = 4;
constexpr size_t kRails = 3;

Settings small_stripes() {
  Settings settings;
  settings.min_stripe = 4096;
  settings.rail_retry = 0;
  return settings;
}

class Flush : public ::testing::Test {
 protected:
  Flush() {
    require_flushes(to_);
    for (size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<std::byte>(i * 7 + 1);
    source_region_ = *from_.device().memory().acquire({source_.data(), source_.size()});
    target_region_ =
        *to_.device().memory().acquire({target_.data(), target_.size(), MemoryKind::kCuda});
    link_ = connect(network_, from_, to_, kRails, 0);
  }
  ~Flush() override { link_ = {}; }

  bool step(Comm& comm, Request* request) {
    bool done = false;
    EXPECT_EQ(comm.test(request, &done, nullptr), Status::kOk) << comm.failure().what;
    return done;
  }
  // A message arrives; nothing is flushed.
  void receive(size_t message) {
    Request *send = nullptr, *receive = nullptr;
    const Receive wanted{&target_[message * kBytes], kBytes, 0, target_region_};
    ASSERT_EQ(link_.receiver->irecv({&wanted, 1}, false, &receive), Status::kOk);
    const std::byte* const data = &source_[message * kBytes];
    for (int i = 0; i < 1000 && send == nullptr; ++i) {
      ASSERT_EQ(link_.sender->isend(data, kBytes, 0, source_region_, &send), Status::kOk);
      ASSERT_EQ(link_.receiver->progress(), Status::kOk);
      network_.advance(1'000);
    }
    ASSERT_NE(send, nullptr);
    bool sent = false, received = false;
    for (int i = 0; i < 10'000 && !(sent && received); ++i) {
      sent = sent || step(*link_.sender, send);
      received = received || step(*link_.receiver, receive);
      network_.advance(1'000);
    }
    ASSERT_TRUE(sent && received);
  }
  Request* flush(size_t message) {
    Request* request = nullptr;
    EXPECT_EQ(link_.receiver->flush(&target_[message * kBytes], target_region_, &request),
              Status::kOk);
    return request;
  }
  void finish(Request* request) {
    int steps = 0;
    for (; steps < 100 && !step(*link_.receiver, request); ++steps) network_.advance(1'000);
    ASSERT_LT(steps, 100);
  }
  bool visible(size_t message) const {
    return std::equal(&target_[message * kBytes], &target_[message * kBytes] + kBytes,
                      &source_[message * kBytes]);
  }

  // The memory outlives the rails that it is registered on.
  std::vector<std::byte> source_ = std::vector<std::byte>(kMessages * kBytes);
  std::vector<std::byte> target_ = std::vector<std::byte>(kMessages * kBytes);
  sim::Network network_{1};
  SimHost from_{network_, kRails, device_memory_caps(), small_stripes(), "a"};
  SimHost to_{network_, kRails, device_memory_caps(), small_stripes(), "b"};
  const MemoryRegion *source_region_ = nullptr, *target_region_ = nullptr;
  SimLink link_;
};

TEST_F(Flush, MakesWhatEveryRailDeliveredVisible) {
  ASSERT_NO_FATAL_FAILURE(receive(0));
  for (const sim::Rail* rail : from_.rails) EXPECT_GT(rail->works_posted(), 1u);
  EXPECT_FALSE(visible(0)) << "the simulated device memory shows what was not flushed";
  Request* const request = flush(0);
  ASSERT_NE(request, nullptr);
  EXPECT_FALSE(step(*link_.receiver, request)) << "a read takes time";
  finish(request);
  EXPECT_TRUE(visible(0));
}

// The reads of the first flush already cover the second message.
TEST_F(Flush, WaitsForTheReadsOfEarlierOnes) {
  ASSERT_NO_FATAL_FAILURE(receive(0));
  ASSERT_NO_FATAL_FAILURE(receive(1));
  Request* const first = flush(0);
  Request* const second = flush(1);
  ASSERT_TRUE(first != nullptr && second != nullptr && first != second);
  EXPECT_FALSE(step(*link_.receiver, second));
  finish(second);
  EXPECT_TRUE(visible(0) && visible(1));
  finish(first);
}

// A simulated rail takes two reads at a time.
TEST_F(Flush, WaitsForARailThatHasNoRoom) {
  std::vector<Request*> requests;
  for (size_t message = 0; message < kMessages; ++message) {
    ASSERT_NO_FATAL_FAILURE(receive(message));
    requests.push_back(flush(message));
    ASSERT_NE(requests.back(), nullptr);
  }
  // Nothing has come since the last one, whose reads are still to begin.
  requests.push_back(flush(kMessages - 1));
  ASSERT_NE(requests.back(), nullptr);
  finish(requests.back());
  for (size_t message = 0; message < kMessages; ++message) EXPECT_TRUE(visible(message));
  for (size_t i = 0; i + 1 < requests.size(); ++i) finish(requests[i]);
}

// As NCCL does: new flushes begin before the oldest is done, and only the oldest is tested.
TEST_F(Flush, TheOldestIsDoneThoughOthersTakeItsRoom) {
  std::deque<Request*> open;
  for (int round = 0; round < 50; ++round) {
    for (const size_t again : {0, 1, 2}) {
      ASSERT_NO_FATAL_FAILURE(receive(again));
      open.push_back(flush(again));
      ASSERT_NE(open.back(), nullptr);
    }
    while (open.size() > 2) {
      ASSERT_NO_FATAL_FAILURE(finish(open.front()));
      open.pop_front();
    }
  }
  for (Request* const request : open) finish(request);
  EXPECT_TRUE(visible(0) && visible(1) && visible(2));
}

TEST_F(Flush, FailsWithTheErrorOfTheRail) {
  ASSERT_NO_FATAL_FAILURE(receive(0));
  MemoryRegion stranger = *target_region_;
  stranger.keys[1].local ^= 1;
  Request* request = nullptr;
  EXPECT_NE(link_.receiver->flush(target_.data(), &stranger, &request), Status::kOk);
  EXPECT_EQ(request, nullptr);
  EXPECT_NE(link_.receiver->failure().what.find("a flush at"), std::string::npos)
      << link_.receiver->failure().what;
}

TEST_F(Flush, NoMoreAreOpenThanRequestsMayBe) {
  ASSERT_NO_FATAL_FAILURE(receive(0));
  for (int i = 0; i < kMaxRequests; ++i) ASSERT_NE(flush(0), nullptr) << i;
  Request* request = nullptr;
  EXPECT_EQ(link_.receiver->flush(target_.data(), target_region_, &request), Status::kInvalid);
  EXPECT_EQ(request, nullptr);
}

TEST_F(Flush, HasADeadline) {
  ASSERT_NO_FATAL_FAILURE(receive(0));
  for (sim::Rail* rail : to_.rails) {
    sim::RailModel model = rail->model();
    model.latency_ns = UINT64_MAX / 4;  // of a read too
    rail->configure(rail->caps(), model);
  }
  Request* const request = flush(0);
  ASSERT_NE(request, nullptr);
  bool done = false;
  Status status = Status::kOk;
  int seconds = 0;
  for (; seconds < 100 && status == Status::kOk; ++seconds) {
    status = link_.receiver->test(request, &done, nullptr);
    network_.advance(1'000'000'000);
  }
  EXPECT_EQ(status, Status::kTimeout);
  EXPECT_FALSE(done);
  EXPECT_GE(seconds, 60) << "NCCL_SLIME_PEER_TIMEOUT";
  const std::string& what = link_.receiver->failure().what;
  for (const char* const text : {"flush at ", "b.0, b.1, b.2", "NCCL_SLIME_PEER_TIMEOUT"}) {
    EXPECT_NE(what.find(text), std::string::npos) << what;
  }
}

TEST_F(Flush, ReadsOnARailThatHasDiedSince) {
  ASSERT_NO_FATAL_FAILURE(receive(0));
  to_.rails[1]->kill(sim::Death::kNoticed);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(link_.sender->progress(), Status::kOk);
    EXPECT_EQ(link_.receiver->progress(), Status::kOk);
    network_.advance(10'000);
  }
  ASSERT_EQ(link_.receiver->link().rails().up_count(), kRails - 1);
  finish(flush(0));
  EXPECT_TRUE(visible(0));
}

TEST_F(Flush, TestOfOneThatIsDoneIsAnError) {
  ASSERT_NO_FATAL_FAILURE(receive(0));
  Request* const request = flush(0);
  finish(request);
  bool done = false;
  EXPECT_EQ(link_.receiver->test(request, &done, nullptr), Status::kInvalid);
}

}  // namespace
}  // namespace slime::test
