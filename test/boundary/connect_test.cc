// Connections: many per listener, half-open ones, handles that are not ours, and no leaks.
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "test/boundary/support/net.h"

namespace slime::boundary {
namespace {

// Some leave attempts behind that versions without a context never end; the plugin then keeps its
// settings. So these tests have copies of their own.
class Connecting : public NetTest, public testing::WithParamInterface<int> {
 protected:
  Connecting() : NetTest(own_copy(GetParam()), GetParam()) {}
  static const Plugin& own_copy(int version) {
    static std::map<int, Plugin> copies;
    return copies[version];
  }
  void SetUp() override {
    ASSERT_EQ(net_.init(), nccl::kSuccess);
    ASSERT_EQ(net_.listen(0, handle_.data(), &listening_), nccl::kSuccess) << Log::text();
    ASSERT_NE(listening_, nullptr);
  }
  void TearDown() override {
    if (listening_) {
      EXPECT_EQ(net_.close_listen(listening_), nccl::kSuccess);
    }
    finalize();
  }
  // The error of a connect that is repeated until it ends.
  ResultCode connect_until_error(HandleBytes& handle) {
    ResultCode code = nccl::kSuccess;
    void *send = nullptr, *recv = nullptr;
    wait_until([&] {
      code = net_.connect(0, handle.data(), &send);
      EXPECT_EQ(net_.accept(listening_, &recv), nccl::kSuccess) << Log::text();
      return code != nccl::kSuccess || send != nullptr;
    });
    EXPECT_EQ(send, nullptr);
    EXPECT_EQ(recv, nullptr);
    return code;
  }

  HandleBytes handle_{};
  void* listening_ = nullptr;
};
SLIME_FOR_VERSIONS(Connecting, 8, 12);

TEST_P(Connecting, AListenerTakesSeveralPeersOneAfterTheOther) {
  for (int round = 0; round < 3; ++round) {
    HandleBytes copy = handle_;
    void *send = nullptr, *recv = nullptr;
    ASSERT_TRUE(Pair::join(net_, 0, copy, listening_, &send, &recv));
    EXPECT_EQ(copy, handle_) << "the attempt is over, so its mark is gone";
    EXPECT_EQ(net_.close_send(send), nccl::kSuccess);
    EXPECT_EQ(net_.close_recv(recv), nccl::kSuccess);
  }
}

TEST_P(Connecting, AListenerTakesSeveralPeersAtOnce) {
  constexpr size_t kPeers = 4;
  std::array<HandleBytes, kPeers> copies;
  copies.fill(handle_);
  std::array<void*, kPeers> send{}, recv{};
  size_t accepted = 0;
  ASSERT_TRUE(wait_until([&] {
    bool all = accepted == kPeers;
    for (size_t i = 0; i < kPeers; ++i) {
      if (send[i] == nullptr) {
        EXPECT_EQ(net_.connect(0, copies[i].data(), &send[i]), nccl::kSuccess);
      }
      all = all && send[i] != nullptr;
    }
    if (accepted < kPeers) {
      EXPECT_EQ(net_.accept(listening_, &recv[accepted]), nccl::kSuccess);
      if (recv[accepted] != nullptr) ++accepted;
    }
    return all || HasFailure();
  })) << Log::text();
  for (size_t i = 0; i < kPeers; ++i) {
    EXPECT_EQ(net_.close_send(send[i]), nccl::kSuccess);
    EXPECT_EQ(net_.close_recv(recv[i]), nccl::kSuccess);
  }
}

TEST_P(Connecting, NeitherEndWaitsForTheOther) {
  const auto start = std::chrono::steady_clock::now();
  void *send = nullptr, *recv = nullptr;
  EXPECT_EQ(net_.accept(listening_, &recv), nccl::kSuccess);
  EXPECT_EQ(recv, nullptr);
  EXPECT_EQ(net_.connect(0, handle_.data(), &send), nccl::kSuccess);
  EXPECT_EQ(send, nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_P(Connecting, GarbageIsNoHandle) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 50; ++round) {
    HandleBytes garbage;
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    Log::clear();
    void* send = &garbage;
    EXPECT_EQ(net_.connect(0, garbage.data(), &send), nccl::kInternalError);
    EXPECT_EQ(Log::count(nccl::kLogWarn), 1u) << Log::text();
    EXPECT_EQ(send, &garbage);
  }
  HandleBytes zeros{};
  void* send = nullptr;
  EXPECT_NE(net_.connect(0, zeros.data(), &send), nccl::kSuccess);
}

TEST_P(Connecting, AnAlteredByteIsNoticed) {
  int refused = 0;
  for (size_t i = 0; i < handle_.size(); i += 7) {
    HandleBytes altered = handle_;
    altered[i] ^= std::byte{0x55};
    HandleBytes copy = altered;
    void* send = nullptr;
    Log::clear();
    // Padding may carry anything: what counts is that nothing connects to the wrong place.
    if (net_.connect(0, copy.data(), &send) != nccl::kSuccess) ++refused;
    EXPECT_EQ(send, nullptr);
  }
  EXPECT_GT(refused, 0);
}

TEST_P(Connecting, AHandleOfAListenerThatIsGoneFails) {
  EXPECT_EQ(net_.close_listen(listening_), nccl::kSuccess);
  listening_ = nullptr;
  void* send = nullptr;
  ResultCode code = nccl::kSuccess;
  EXPECT_TRUE(wait_until([&] {
    code = net_.connect(0, handle_.data(), &send);
    return code != nccl::kSuccess;
  }));
  EXPECT_EQ(code, nccl::kRemoteError);
  EXPECT_EQ(send, nullptr);
  EXPECT_EQ(Log::count(nccl::kLogWarn), 1u) << Log::text();
}

TEST_P(Connecting, TheListenerRefusesWhoDoesNotKnowItsSecret) {
  // A stale handle: the address of a listener that lives, the secret of one that is gone.
  HandleBytes other{};
  void* gone = nullptr;
  ASSERT_EQ(net_.listen(0, other.data(), &gone), nccl::kSuccess);
  EXPECT_EQ(net_.close_listen(gone), nccl::kSuccess);
  size_t first = 0;
  while (first < other.size() && other[first] == handle_[first]) ++first;
  ASSERT_LT(first, other.size());
  HandleBytes mixed = handle_;
  mixed[first] = other[first];  // the first difference is in the secret, not in the port
  EXPECT_NE(connect_until_error(mixed), nccl::kSuccess);
  HandleBytes good = handle_;
  void *send = nullptr, *recv = nullptr;
  ASSERT_TRUE(Pair::join(net_, 0, good, listening_, &send, &recv));
  EXPECT_EQ(net_.close_send(send), nccl::kSuccess);
  EXPECT_EQ(net_.close_recv(recv), nccl::kSuccess);
}

TEST_P(Connecting, TwoCommsInTwoThreads) {
  std::vector<std::thread> threads;
  std::array<bool, 2> good{};
  for (size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([this, t, &good] {
      Pair pair(net_);
      Buffer from(net_, pair.send, 200000), to(net_, pair.recv, 200000);
      bool all = pair.connected;
      for (unsigned round = 0; all && round < 20; ++round) {
        from.fill(static_cast<unsigned>(t) * 1000 + round);
        Open sent, received;
        all = transfer(net_, pair, from, to, from.bytes - round, &sent, &received) &&
              memcmp(from.data(), to.data(), from.bytes - round) == 0;
      }
      good[t] = all;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(good[0] && good[1]) << Log::text();
}

TEST_P(Connecting, AThousandRoundsLeaveNothingBehind) {
  constexpr int kWarmUp = 100, kRounds = 1000;
  size_t descriptors = 0, bytes = 0;
  for (int round = 0; round < kWarmUp + kRounds; ++round) {
    {
      Pair pair(net_);
      ASSERT_TRUE(pair.connected) << "round " << round;
    }
    if (round % 50 == 0) Log::clear();
    if (round != kWarmUp - 1) continue;
    // A channel may linger until its last bytes have left, and the next one looks after it.
    wait_until([] { return false; }, std::chrono::milliseconds(300));
    { Pair pair(net_); }
    Log::clear();
    descriptors = open_descriptors();
    bytes = allocated_bytes();
  }
  EXPECT_TRUE(wait_until([&] {
    if (open_descriptors() <= descriptors) return true;
    const Pair pair(net_);
    return false;
  })) << open_descriptors()
      << " descriptors, before " << descriptors;
  Log::clear();
  EXPECT_LT(allocated_bytes(), bytes + (64 << 10)) << "before: " << bytes;
}

}  // namespace
}  // namespace slime::boundary
