// What a caller of the engine may rely on, over every kind of rail: messages outlive their sender,
// every call makes progress, and the promised number of receives is always possible.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "test/support/sim_hosts.h"
#include "test/support/tcp_link.h"

namespace slime::test {
namespace {

struct Ends {
  std::unique_ptr<SendComm> sender;
  std::unique_ptr<RecvComm> receiver;
};

class SimEnds {
 public:
  static constexpr const char* kName = "sim";
  explicit SimEnds(size_t rails) : rails_(static_cast<uint32_t>(rails)) {}
  Ends connect(bool forth = true) {
    SimLink link = test::connect(network_, forth ? a_ : b_, forth ? b_ : a_, rails_, 4096);
    return {std::move(link.sender), std::move(link.receiver)};
  }
  Device& left() { return a_.device(); }
  Device& right() { return b_.device(); }
  void pass() {
    if (!network_.step()) network_.advance(1000);
  }

 private:
  sim::Network network_{1};
  RailCaps caps_;
  uint32_t rails_;
  SimHost a_{network_, 4, caps_, Settings(), "a"}, b_{network_, 4, caps_, Settings(), "b"};
};

class TcpEnds {
 public:
  static constexpr const char* kName = "tcp";
  explicit TcpEnds(size_t rails) : a_(settings(rails)), b_(settings(rails)) {}
  Ends connect(bool forth = true) {
    TcpLink link;
    link.connect(forth ? a_ : b_, forth ? b_ : a_);
    return {std::move(link.sender), std::move(link.receiver)};
  }
  Device& left() { return *a_.devices->device(0); }
  Device& right() { return *b_.devices->device(0); }
  void pass() {}

 private:
  static Settings settings(size_t rails) {
    Settings settings;
    settings.rails_per_if = static_cast<int>(rails);
    return settings;
  }
  TcpHost a_, b_;
};

// Two devices with memory at both.
template <typename World>
class Calls : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 1 << 20;

  void open(size_t rails) {
    links_.clear();
    world_ = std::make_unique<World>(rails);
    left_ = *world_->left().memory().acquire({here.data(), kBytes});
    right_ = *world_->right().memory().acquire({there.data(), kBytes});
    for (size_t i = 0; i < kBytes; ++i) here[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  Ends& link(bool forth = true) { return links_.emplace_back(world_->connect(forth)); }

  bool until(const std::function<bool()>& condition) {
    return in_time([&] {
      world_->pass();
      return condition();
    });
  }
  Request* send(SendComm& sender, size_t offset, size_t bytes, int tag = 0) {
    Request* request = nullptr;
    EXPECT_TRUE(until([&] {
      const auto* region = &sender.device() == &world_->left() ? left_ : right_;
      EXPECT_EQ(sender.isend(region->address + offset, bytes, tag, region, &request), Status::kOk);
      return request != nullptr || this->HasFailure();
    }));
    return request;
  }
  Request* receive(RecvComm& receiver, size_t offset, size_t bytes, int tag = 0) {
    const auto* region = &receiver.device() == &world_->left() ? left_ : right_;
    const Receive wanted{region->address + offset, bytes, tag, region};
    Request* request = nullptr;
    status = receiver.irecv({&wanted, 1}, false, &request);
    return request;
  }
  // Tests `request` until it is done, or until the link fails.
  bool complete(
      Comm& comm, Request* request, const std::function<void()>& besides = [] {}) {
    bool done = false;
    EXPECT_TRUE(until([&] {
      besides();
      status = comm.test(request, &done, nullptr);
      return done || status != Status::kOk;
    }));
    return done;
  }

  std::vector<std::byte> here = std::vector<std::byte>(kBytes);
  std::vector<std::byte> there = std::vector<std::byte>(kBytes);
  Status status = Status::kOk;  // of the last call
  std::unique_ptr<World> world_;
  std::deque<Ends> links_;
  const MemoryRegion *left_ = nullptr, *right_ = nullptr;
};

struct WorldName {
  template <typename World>
  static std::string GetName(int) {
    return World::kName;
  }
};
using Worlds = ::testing::Types<SimEnds, TcpEnds>;
TYPED_TEST_SUITE(Calls, Worlds, WorldName);

// Small sends are done before the receiver has posted anything.
TYPED_TEST(Calls, MessagesAreDeliveredAfterTheirSenderHasClosed) {
  for (const size_t rails : {1, 2}) {
    SCOPED_TRACE(rails);
    this->open(rails);
    Ends& ends = this->link();
    constexpr size_t kMessages = 20;
    for (size_t i = 0; i < kMessages; ++i) {
      Request* request = this->send(*ends.sender, i * 64, 64, static_cast<int>(i % 3));
      ASSERT_TRUE(this->complete(*ends.sender, request, [&] { (void)ends.receiver->progress(); }));
    }
    ends.sender.reset();
    ASSERT_TRUE(this->until([&] { return ends.receiver->progress() != Status::kOk; }));
    for (size_t i = 0; i < kMessages; ++i) {
      Request* request = this->receive(*ends.receiver, i * 64, 64, static_cast<int>(i % 3));
      ASSERT_NE(request, nullptr) << "message " << i << ": " << ends.receiver->failure().what;
      ASSERT_TRUE(this->complete(*ends.receiver, request));
    }
    EXPECT_EQ(std::memcmp(this->here.data(), this->there.data(), kMessages * 64), 0);
    EXPECT_EQ(this->receive(*ends.receiver, 0, 64), nullptr);
    EXPECT_EQ(this->status, Status::kRemote) << "an error comes after all that arrived";
  }
}

// The receiver has not been called since before the first send.
TYPED_TEST(Calls, MessagesAreDeliveredToAReceiverThatComesLate) {
  this->open(1);
  Ends& ends = this->link();
  for (size_t i = 0; i < 3; ++i) {
    Request* request = this->send(*ends.sender, i * 64, 64);
    ASSERT_TRUE(this->complete(*ends.sender, request));
  }
  ends.sender.reset();
  for (size_t i = 0; i < 3; ++i) {
    Request* request = this->receive(*ends.receiver, i * 64, 64);
    ASSERT_NE(request, nullptr) << ends.receiver->failure().what;
    ASSERT_TRUE(this->complete(*ends.receiver, request)) << ends.receiver->failure().what;
  }
  EXPECT_EQ(std::memcmp(this->here.data(), this->there.data(), 3 * 64), 0);
}

// Both ends post all their receives and then repeat isend until it is taken; nobody calls test.
TYPED_TEST(Calls, SendsAreTakenThoughNobodyCallsTest) {
  for (const size_t small : {0, 40}) {  // after small messages, receives are announced late
    SCOPED_TRACE(small);
    this->open(2);
    Ends& forth = this->link(true);
    Ends& back = this->link(false);
    for (size_t i = 0; i < small; ++i) {
      for (Ends* ends : {&forth, &back}) {
        Request* receive = this->receive(*ends->receiver, 0, 64);
        Request* send = this->send(*ends->sender, 0, 64);
        const auto besides = [&] { (void)ends->receiver->progress(); };
        ASSERT_TRUE(this->complete(*ends->sender, send, besides));
        ASSERT_TRUE(this->complete(*ends->receiver, receive));
      }
    }
    std::vector<Request*> receives;
    for (int i = 0; i < kMaxRequests; ++i) {
      for (Ends* ends : {&forth, &back}) {
        receives.push_back(this->receive(*ends->receiver, 0, 20'000));
        ASSERT_NE(receives.back(), nullptr) << "receive " << i;
      }
    }
    Request *one = nullptr, *other = nullptr;
    ASSERT_TRUE(this->until([&] {
      if (one == nullptr) {
        (void)forth.sender->isend(this->here.data(), 20'000, 0, this->left_, &one);
      }
      if (other == nullptr) {
        (void)back.sender->isend(this->there.data(), 20'000, 0, this->right_, &other);
      }
      return one != nullptr && other != nullptr;
    })) << "isend is never taken";
  }
}

// A send that lies in the queue of one comm goes out though the caller tests another.
TYPED_TEST(Calls, AWaitAtOneCommMovesTheOthersOfTheThread) {
  this->open(1);
  Ends& forth = this->link(true);
  Ends& back = this->link(false);
  Request* there_receive = this->receive(*forth.receiver, 0, 100'000);
  Request* here_receive = this->receive(*back.receiver, 200'000, 100'000);
  ASSERT_TRUE(there_receive && here_receive);
  for (Ends* ends : {&forth, &back}) {
    ASSERT_TRUE(this->until([&] {
      (void)ends->receiver->progress();
      Request* request = nullptr;
      const bool is_forth = ends == &forth;
      (void)ends->sender->isend(is_forth ? this->here.data() : this->there.data() + 200'000,
                                100'000, 0, is_forth ? this->left_ : this->right_, &request);
      return request != nullptr;
    }));
  }
  // Both ranks wait for what they receive, and test their sends after that.
  EXPECT_TRUE(this->complete(*forth.receiver, there_receive));
  EXPECT_TRUE(this->complete(*back.receiver, here_receive));
  EXPECT_EQ(std::memcmp(this->here.data(), this->there.data(), 100'000), 0);
}

// The sender, which has sent messages for the first receives, is never called again.
TYPED_TEST(Calls, TheNumberOfReceivesThatIsPromisedIsAlwaysPossible) {
  this->open(1);
  Ends& ends = this->link();
  std::vector<Request*> first;
  for (int i = 0; i < kMaxRequests; ++i) first.push_back(this->receive(*ends.receiver, 0, 64));
  for (int i = 0; i < kMaxRequests; ++i) (void)this->send(*ends.sender, 0, 64);
  for (Request* request : first) {
    ASSERT_NE(request, nullptr);
    ASSERT_TRUE(this->complete(*ends.receiver, request));
  }
  for (int i = 0; i < kMaxRequests; ++i) {
    ASSERT_NE(this->receive(*ends.receiver, 0, 64), nullptr) << "receive " << i;
  }
  EXPECT_EQ(this->receive(*ends.receiver, 0, 64), nullptr) << "more than is promised";
  EXPECT_EQ(this->status, Status::kOk);
}

// A receive that nobody sends to does not limit how many messages of another tag may pass it.
TYPED_TEST(Calls, AReceiveThatWaitsStopsNoOther) {
  this->open(1);
  Ends& ends = this->link();
  ASSERT_NE(this->receive(*ends.receiver, 0, 64, 1), nullptr);
  for (int i = 0; i < 200; ++i) {
    Request* request = this->receive(*ends.receiver, 0, 64, 2);
    ASSERT_NE(request, nullptr) << i << ": " << ends.receiver->failure().what;
    // The CTS goes out, and is read, before the message that makes it needless.
    for (int k = 0; k < 100; ++k) {
      bool done = false;
      ASSERT_EQ(ends.receiver->test(request, &done, nullptr), Status::kOk);
      this->world_->pass();
      (void)ends.sender->progress();
    }
    Request* sent = this->send(*ends.sender, 0, 64, 2);
    ASSERT_TRUE(this->complete(*ends.sender, sent));
    ASSERT_TRUE(this->complete(*ends.receiver, request, [&] { (void)ends.sender->progress(); }));
  }
  Request* late = this->send(*ends.sender, 0, 64, 1);
  EXPECT_TRUE(this->complete(*ends.sender, late));
}

// Comms go from thread to thread, are driven by progress() beside others, and are closed by a
// thread that has never called them, while both threads wait for something all the time.
TEST(Threads, CommsMayChangeTheirThread) {
  constexpr int kRounds = 40;
  Settings settings;
  std::mutex mutex;
  std::vector<Ends> handed_over;
  std::atomic<int> running = 2;
  const auto drive = [&](int rounds) {
    TcpHost a(settings), b(settings);
    std::vector<std::byte> bytes(256);
    for (int i = 0; i < rounds; ++i) {
      TcpLink link;
      link.connect(a, b);
      const auto* region = *b.devices->device(0)->memory().acquire({bytes.data(), bytes.size()});
      const Receive wanted{bytes.data(), bytes.size(), 0, region};
      Request* receive = nullptr;
      EXPECT_EQ(link.receiver->irecv({&wanted, 1}, false, &receive), Status::kOk);
      bool done = false;
      for (int k = 0; k < 300 && !done; ++k) {  // nothing comes: all comms of the thread are moved
        EXPECT_EQ(link.receiver->test(receive, &done, nullptr), Status::kOk);
      }
      const std::lock_guard lock(mutex);
      for (Ends& other : handed_over) {
        (void)other.sender->progress();
        (void)other.receiver->progress();
      }
      if (i % 2 == 0) handed_over.clear();  // closed here
      handed_over.push_back({std::move(link.sender), std::move(link.receiver)});
      EXPECT_TRUE(b.devices->device(0)->memory().release(region));
    }
    --running;
    while (running > 0) usleep(1000);  // hosts outlive what others hold of them
    const std::lock_guard lock(mutex);
    handed_over.clear();
  };
  std::thread other(drive, kRounds);
  drive(kRounds);
  other.join();
}

}  // namespace
}  // namespace slime::test
