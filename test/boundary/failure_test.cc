// Connections that end badly: aborted, left by the peer, used wrongly.
#include <sys/mman.h>

#include <cstring>

#include "test/boundary/support/traffic.h"

namespace slime::boundary {
namespace {

class Failure : public Traffic {
 protected:
  void SetUp() override {
    set("NCCL_SLIME_PEER_TIMEOUT", "60");
    Traffic::SetUp();
  }
};
SLIME_FOR_ALL_VERSIONS(Failure);

// NCCL's order when a communicator is aborted: deregMr, then close; requests are never tested.
TEST_P(Failure, AbortWithRequestsInFlight) {
  constexpr size_t kBytes = 4 << 20;
  void* const memory =
      mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::byte* const from = static_cast<std::byte*>(memory);
  std::byte* const to = from + kBytes;
  void *send_mhandle = nullptr, *recv_mhandle = nullptr;
  ASSERT_EQ(net_.reg_mr(pair_->send, from, kBytes, nccl::kPointerHost, &send_mhandle),
            nccl::kSuccess);
  ASSERT_EQ(net_.reg_mr(pair_->recv, to, kBytes, nccl::kPointerHost, &recv_mhandle),
            nccl::kSuccess);
  std::array<Open, 4> sent, received;
  for (Open& open : received) {
    ASSERT_EQ(net_.irecv_one(pair_->recv, to, kBytes, 0, recv_mhandle, &open.request),
              nccl::kSuccess);
    ASSERT_NE(open.request, nullptr);
  }
  ASSERT_TRUE(wait_until([&] {  // until some of the bytes are under way
    for (Open& open : sent) {
      if (open.request) continue;
      EXPECT_EQ(net_.isend(pair_->send, from, kBytes, 0, send_mhandle, &open.request),
                nccl::kSuccess);
      break;
    }
    poll(net_, &received[0]);
    return sent.back().request != nullptr || HasFailure();
  }));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(net_.dereg_mr(pair_->send, send_mhandle), nccl::kSuccess);
  EXPECT_EQ(net_.dereg_mr(pair_->recv, recv_mhandle), nccl::kSuccess);
  ASSERT_EQ(munmap(memory, 2 * kBytes), 0);  // whoever still touches it, crashes
  pair_->close();
  // No waiting for the peer, that is: each of the settings for that is a minute or more here.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_P(Failure, APeerThatIsGoneIsARemoteErrorToldOnce) {
  // More than what the sockets on both sides hold: else all of it may have left before the end.
  constexpr size_t kBytes = 64 << 20;
  Buffer from(net_, pair_->send, kBytes);
  Open sent;
  {
    Buffer to(net_, pair_->recv, kBytes);
    void* received = nullptr;
    ASSERT_EQ(net_.irecv_one(pair_->recv, to.data(), to.bytes, 0, to.mhandle, &received),
              nccl::kSuccess);
    ASSERT_NE(received, nullptr);
    ASSERT_TRUE(wait_until([&] {
      int done = 0;
      EXPECT_EQ(net_.test(received, &done, nullptr), nccl::kSuccess);
      EXPECT_EQ(net_.isend(pair_->send, from.data(), from.bytes, 0, from.mhandle, &sent.request),
                nccl::kSuccess);
      return sent.request != nullptr || HasFailure();
    }));
  }
  EXPECT_EQ(net_.close_recv(pair_->recv), nccl::kSuccess);
  pair_->recv = nullptr;
  ResultCode code = nccl::kSuccess;
  int done = 0;
  ASSERT_TRUE(wait_until([&] {
    code = net_.test(sent.request, &done, nullptr);
    return code != nccl::kSuccess || done;
  }));
  EXPECT_EQ(code, nccl::kRemoteError) << Log::text();
  EXPECT_EQ(done, 0);
  for (int again = 0; again < 3; ++again) {  // for good, and logged once
    EXPECT_EQ(net_.test(sent.request, &done, nullptr), nccl::kRemoteError);
    void* request = nullptr;
    EXPECT_EQ(net_.isend(pair_->send, from.data(), 8, 0, from.mhandle, &request), nccl::kSuccess);
    EXPECT_EQ(net_.test(request, &done, nullptr), nccl::kRemoteError);
  }
  const size_t told =
      Log::count(nccl::kLogWarn, " test: ") + Log::count(nccl::kLogWarn, " isend: ");
  EXPECT_EQ(told, 1u) << Log::text();
  EXPECT_LE(Log::count(nccl::kLogWarn), 2u) << "one for each of the two rails" << Log::text();
  expected_warnings_ = Log::count(nccl::kLogWarn);
}

// A send that nobody will receive fails in its test, as with NCCL's own transports.
TEST_P(Failure, AReceiverThatClosesWithItsReceivesOpenFailsNoIsend) {
  constexpr size_t kBytes = 64 << 10;  // no small message: each send needs a receive
  constexpr int kRequests = 32;
  Buffer from(net_, pair_->send, kBytes);
  {
    Buffer to(net_, pair_->recv, kBytes);
    for (int i = 0; i < kRequests; ++i) {
      void* received = nullptr;
      ASSERT_EQ(net_.irecv_one(pair_->recv, to.data(), to.bytes, 0, to.mhandle, &received),
                nccl::kSuccess);
      ASSERT_NE(received, nullptr);
    }
  }
  EXPECT_EQ(net_.close_recv(pair_->recv), nccl::kSuccess);
  pair_->recv = nullptr;
  std::array<Open, 2 * kRequests> sends;  // also when it is known that the peer has gone
  size_t failed = 0;
  for (Open& open : sends) {
    ASSERT_TRUE(wait_until([&] {
      EXPECT_EQ(net_.isend(pair_->send, from.data(), kBytes, 0, from.mhandle, &open.request),
                nccl::kSuccess);
      return open.request != nullptr || HasFailure();
    }));
  }
  for (const Open& open : sends) {
    int done = 0;
    ResultCode code = nccl::kSuccess;
    ASSERT_TRUE(wait_until([&] {
      code = net_.test(open.request, &done, nullptr);
      return code != nccl::kSuccess || done;
    }));
    failed += code == nccl::kRemoteError;
  }
  EXPECT_GE(failed, size_t{kRequests});
  expected_warnings_ = Log::count(nccl::kLogWarn);
}

// Whichever end finds it: the sender has the CTS of the one, and the other goes eagerly.
TEST_P(Failure, AMessageLongerThanItsReceiveIsToldAtBothEnds) {
  constexpr struct { size_t sent, taken; } kCases[] = {{100000, 50000}, {8000, 4000}, {1, 0}};
  for (const auto& [bytes, taken] : kCases) {
    SCOPED_TRACE(bytes);
    Log::clear();
    Pair pair(net_);
    ASSERT_TRUE(pair.connected);
    Buffer from(net_, pair.send, bytes), to(net_, pair.recv, bytes);
    Open sent, received;
    ASSERT_EQ(net_.irecv_one(pair.recv, to.data(), taken, 7, to.mhandle, &received.request),
              nccl::kSuccess);
    ResultCode at_sender = nccl::kSuccess, at_receiver = nccl::kSuccess;
    ASSERT_TRUE(wait_until([&] {
      int done = 0;
      if (at_receiver == nccl::kSuccess) {
        at_receiver = net_.test(received.request, &done, nullptr);
        EXPECT_EQ(done, 0);
      }
      if (at_sender == nccl::kSuccess && sent.request && !sent.done) {
        at_sender = net_.test(sent.request, &done, nullptr);
        sent.done = done != 0;
      } else if (at_sender == nccl::kSuccess) {  // the next send of a program that knows nothing
        at_sender = net_.isend(pair.send, from.data(), bytes, 7, from.mhandle, &sent.request);
        sent.done = false;
      }
      return at_sender != nccl::kSuccess && at_receiver != nccl::kSuccess;
    })) << Log::text();
    EXPECT_EQ(at_sender, nccl::kInvalidUsage);
    EXPECT_EQ(at_receiver, nccl::kInvalidUsage);
    const std::string what = "a send of " + std::to_string(bytes) +
                             " bytes (tag 7) meets a receive of " + std::to_string(taken) +
                             " bytes";
    EXPECT_EQ(Log::count(nccl::kLogWarn, what), 2u) << Log::text();
    EXPECT_EQ(Log::count(nccl::kLogWarn, "peer "), 2u) << Log::text();
  }
  expected_warnings_ = Log::count(nccl::kLogWarn);
}

}  // namespace
}  // namespace slime::boundary
