// Messages through the tables, driven as NCCL's proxy drives them, over loopback.
#include <atomic>
#include <cstring>
#include <deque>
#include <thread>

#include "test/boundary/support/traffic.h"

namespace slime::boundary {
namespace {

SLIME_FOR_ALL_VERSIONS(Traffic);

TEST_P(Traffic, EveryByteArrivesAndSizesAreTold) {
  constexpr size_t kBytes = 3 << 20;
  Buffer from(net_, pair_->send, kBytes);
  Buffer to(net_, pair_->recv, kBytes);
  unsigned seed = 0;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, size_t{127}, size_t{4096},
                             size_t{4097}, size_t{65536}, size_t{524288}, kBytes}) {
    from.fill(++seed);
    memset(to.data(), 0x5a, kBytes);
    Open sent, received;
    ASSERT_TRUE(transfer(net_, *pair_, from, to, bytes, &sent, &received)) << bytes;
    EXPECT_EQ(memcmp(from.data(), to.data(), bytes), 0) << bytes;
    EXPECT_TRUE(bytes == kBytes || to.data()[bytes] == std::byte{0x5a}) << bytes;
    EXPECT_EQ(received.sizes[0], static_cast<int>(bytes));
    EXPECT_EQ(received.sizes[1], 0) << "one receive, one size";
    EXPECT_EQ(sent.sizes[0], static_cast<int>(bytes));
  }
}

TEST_P(Traffic, SizesMayBeNull) {
  Buffer from(net_, pair_->send, 4096);
  Buffer to(net_, pair_->recv, 4096);
  void *sent = nullptr, *received = nullptr;
  ASSERT_EQ(net_.irecv_one(pair_->recv, to.data(), 4096, 1, to.mhandle, &received), nccl::kSuccess);
  ASSERT_NE(received, nullptr);
  int send_done = 0, receive_done = 0;
  EXPECT_TRUE(wait_until([&] {
    if (!sent) {
      EXPECT_EQ(net_.isend(pair_->send, from.data(), 4096, 1, from.mhandle, &sent), nccl::kSuccess);
    }
    if (sent && !send_done) {
      EXPECT_EQ(net_.test(sent, &send_done, nullptr), nccl::kSuccess);
    }
    if (!receive_done) {
      EXPECT_EQ(net_.test(received, &receive_done, nullptr), nccl::kSuccess);
    }
    return send_done && receive_done;
  }));
}

// The tag picks among the receives of one group, in whatever order the sends come.
TEST_P(Traffic, GroupedReceives) {
  constexpr int kGroup = 8;
  constexpr size_t kBytes = 70000;
  Buffer from(net_, pair_->send, kGroup * kBytes);
  Buffer to(net_, pair_->recv, kGroup * kBytes);
  from.fill(99);
  std::array<void*, kGroup> data{}, mhandles{};
  std::array<int64_t, kGroup> sizes{};
  std::array<int, kGroup> tags{};
  for (int i = 0; i < kGroup; ++i) {
    data[i] = to.data() + static_cast<size_t>(i) * kBytes;
    mhandles[i] = to.mhandle;
    sizes[i] = kBytes;
    tags[i] = 100 + i;
  }
  Open received;
  ASSERT_EQ(net_.irecv(pair_->recv, kGroup, data.data(), sizes.data(), tags.data(), mhandles.data(),
                       &received.request),
            nccl::kSuccess);
  ASSERT_NE(received.request, nullptr);
  received.sizes.fill(-1);
  std::array<Open, kGroup> sent;
  ASSERT_TRUE(wait_until([&] {
    bool all = poll(net_, &received);
    for (int i = kGroup - 1; i >= 0; --i) {
      const size_t bytes = i == 3 ? 0 : kBytes - static_cast<size_t>(i) * 1000;
      if (!sent[i].request) {
        EXPECT_EQ(net_.isend(pair_->send, from.data() + static_cast<size_t>(i) * kBytes, bytes,
                             100 + i, from.mhandle, &sent[i].request),
                  nccl::kSuccess);
        all = false;
      } else {
        all = poll(net_, &sent[i]) && all;
      }
    }
    return all || HasFailure();
  })) << Log::text();
  for (int i = 0; i < kGroup; ++i) {
    const size_t bytes = i == 3 ? 0 : kBytes - static_cast<size_t>(i) * 1000;
    const size_t offset = static_cast<size_t>(i) * kBytes;
    EXPECT_EQ(received.sizes[i], static_cast<int>(bytes)) << i;
    EXPECT_EQ(memcmp(from.data() + offset, to.data() + offset, bytes), 0) << i;
  }
}

// At least NCCL_NET_MAX_REQUESTS (32) each way; beyond that NULL and success, never an error.
TEST_P(Traffic, BackPressureIsANullRequest) {
  constexpr size_t kBytes = 20000, kMost = 1000;
  Buffer from(net_, pair_->send, kBytes);
  Buffer to(net_, pair_->recv, kBytes);
  from.fill(5);
  std::deque<Open> receives, sends;
  while (receives.size() < kMost) {
    Open open;
    ASSERT_EQ(net_.irecv_one(pair_->recv, to.data(), kBytes, 0, to.mhandle, &open.request),
              nccl::kSuccess);
    if (!open.request) break;
    receives.push_back(open);
  }
  EXPECT_GE(receives.size(), 32u);
  EXPECT_LT(receives.size(), kMost) << "every queue has a bound";
  ASSERT_TRUE(wait_until([&] {
    Open open;
    EXPECT_EQ(net_.isend(pair_->send, from.data(), kBytes, 0, from.mhandle, &open.request),
              nccl::kSuccess);
    if (open.request) sends.push_back(open);
    poll(net_, &receives.front());  // moves the receiver's end; nothing of it is taken off yet
    return sends.size() == receives.size() || HasFailure();
  })) << sends.size()
      << "\n"
      << Log::text();
  ASSERT_TRUE(wait_until([&] {
    bool all = true;
    for (Open& open : receives) all = poll(net_, &open) && all;
    for (Open& open : sends) all = poll(net_, &open) && all;
    return all || HasFailure();
  }));
  EXPECT_EQ(memcmp(from.data(), to.data(), kBytes), 0);
}

// NCCL 2.24 and later pass 0x1 in *request when they watch the data themselves.
TEST_P(Traffic, ReceiveCompletionMayBeOptional) {
  Buffer from(net_, pair_->send, 64 << 10);
  Buffer to(net_, pair_->recv, 64 << 10);
  for (unsigned round = 0; round < 40; ++round) {
    from.fill(round);
    Open sent, received;
    ASSERT_TRUE(wait_until([&] {
      if (!received.request) {
        received.request = reinterpret_cast<void*>(nccl::kOptionalReceiveCompletion);
        EXPECT_EQ(
            net_.irecv_one(pair_->recv, to.data(), to.bytes, 0, to.mhandle, &received.request),
            nccl::kSuccess);
        EXPECT_NE(received.request, reinterpret_cast<void*>(nccl::kOptionalReceiveCompletion));
      }
      if (!sent.request) {
        EXPECT_EQ(net_.isend(pair_->send, from.data(), from.bytes, 0, from.mhandle, &sent.request),
                  nccl::kSuccess);
      }
      const bool receive_done = received.request && poll(net_, &received);
      const bool send_done = sent.request && poll(net_, &sent);
      return HasFailure() || (receive_done && send_done);
    }));
  }
  // Completed early or not: the bytes come while somebody calls test.
  Open sent, received;
  ASSERT_TRUE(transfer(net_, *pair_, from, to, 8, &sent, &received));
  EXPECT_EQ(memcmp(from.data(), to.data(), from.bytes), 0);
}

TEST_P(Traffic, MemoryComesAndGoesBesideIt) {
  Buffer from(net_, pair_->send, 1 << 20);
  Buffer to(net_, pair_->recv, 1 << 20);
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread service([&] {  // NCCL's service thread
    std::vector<std::byte> other(256 << 10);
    while (!stop) {
      for (void* comm : {pair_->send, pair_->recv}) {
        void *mhandle = nullptr, *part = nullptr;
        EXPECT_EQ(net_.reg_mr(comm, other.data(), other.size(), nccl::kPointerHost, &mhandle),
                  nccl::kSuccess);
        EXPECT_EQ(net_.reg_mr(comm, to.data() + 4096, 4096, nccl::kPointerHost, &part),
                  nccl::kSuccess);
        EXPECT_EQ(net_.dereg_mr(comm, mhandle), nccl::kSuccess);
        EXPECT_EQ(net_.dereg_mr(comm, part), nccl::kSuccess);
      }
      ++rounds;
    }
  });
  for (unsigned round = 0; round < 50 || rounds < 50; ++round) {
    from.fill(round);
    Open sent, received;
    const bool good = transfer(net_, *pair_, from, to, from.bytes, &sent, &received) &&
                      memcmp(from.data(), to.data(), from.bytes) == 0;
    EXPECT_TRUE(good) << round;
    if (!good) break;
  }
  stop = true;
  service.join();
}

}  // namespace
}  // namespace slime::boundary
