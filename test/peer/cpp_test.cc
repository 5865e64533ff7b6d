// include/slime/p2p.h: objects over the C ABI.
#include <slime/p2p.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "test/peer/test_engine.h"

namespace slime {
namespace {

using namespace std::chrono_literals;
using namespace slime::p2p;

constexpr size_t kBytes = 4096;

class CppTest : public testing::Test {
 protected:
  static slime_assignment piece(const Region& mine, const Remote& theirs, uint64_t at) {
    return mine.to(theirs, at, at, kBytes / 4);
  }
  bool same() const { return mine_memory_ == theirs_memory_; }

  const slime_options options_ = TestEngine::with("ifname=lo");
  std::vector<std::byte> mine_memory_ = std::vector<std::byte>(kBytes, std::byte{1}),
                         theirs_memory_ = std::vector<std::byte>(kBytes, std::byte{2});
  Engine here_{options_}, there_{options_};
  Region mine_ = here_.register_memory(mine_memory_),
         theirs_ = there_.register_memory(theirs_memory_);
  Peer peer_ = here_.add(there_.address());
  Remote remote_ = peer_.import(theirs_.advertise());
};

TEST_F(CppTest, ReadsAndWrites) {
  const Done done = peer_.read(mine_.to(remote_, 0, 0, kBytes)).start().wait();
  EXPECT_EQ(done.bytes, kBytes);
  EXPECT_TRUE(same());
  std::ranges::fill(mine_memory_, std::byte{3});
  const std::array pieces = {mine_.to(remote_, 0, 0, kBytes / 2),
                             mine_.to(remote_, kBytes / 2, kBytes / 2, kBytes / 2)};
  Request request = peer_.write(pieces).immediate(4).notification("written").start();
  while (!request.wait_for(1s)) continue;
  EXPECT_TRUE(same());
  const Done expected = there_.any_peer().expect(4).start().wait();
  EXPECT_EQ(expected.bytes, 0u);
  auto told = there_.notification();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->bytes(), "written");
  EXPECT_FALSE(there_.notification());
  const auto came = there_.accept();
  ASSERT_TRUE(came);
  EXPECT_EQ(came->handle(), told->peer().handle());
  told->peer().notify("seen").start().wait();
  EXPECT_EQ(here_.notification()->bytes(), "seen");
}

TEST_F(CppTest, PlansAndPages) {
  std::vector<slime_assignment> list;
  for (uint64_t i = 0; i < 4; ++i) list.push_back(piece(mine_, remote_, i * kBytes / 4));
  Plan plan = peer_.prepare(list);
  const std::array<uint32_t, 2> some = {1, 3};
  EXPECT_EQ(plan.read(some).start().wait().bytes, kBytes / 2);
  EXPECT_EQ(std::ranges::count(mine_memory_, std::byte{2}), ptrdiff_t{kBytes / 2});
  EXPECT_THROW((void)plan.read(std::span<const uint32_t>()).start(), Error);
  EXPECT_EQ(plan.write().start().wait().bytes, kBytes);
  EXPECT_TRUE(same());
  slime_pages pages = SLIME_PAGES_INIT;
  pages.local = mine_.handle();
  pages.remote = remote_.handle();
  pages.page_bytes = kBytes / 4;
  pages.local_pages = pages.remote_pages = some.data();
  pages.count = some.size();
  EXPECT_EQ(peer_.read(pages).start().wait().bytes, kBytes / 2);
}

TEST_F(CppTest, MessagesBothWays) {
  std::string text = "some bytes", room(100, ' ');
  Request receive = there_.any_peer().receive(std::as_writable_bytes(std::span(room)), 7).start();
  EXPECT_FALSE(receive.test());
  peer_.send(std::as_bytes(std::span(text)), 7).start().wait();
  const Done done = receive.wait();
  EXPECT_EQ(room.substr(0, done.bytes), text);
  EXPECT_EQ(done.tag, 7u);
  Peer(there_.get(), done.peer).notify("thanks").start().wait();
  EXPECT_EQ(here_.notification()->bytes(), "thanks");
  peer_.signal(remote_, 8, 5).start().wait();
  uint64_t counter = 0;
  std::memcpy(&counter, &theirs_memory_[8], sizeof counter);
  EXPECT_EQ(counter, 0x0202020202020202 + 5);
}

TEST_F(CppTest, ErrorsAreThrown) {
  try {
    (void)peer_.read(mine_.to(remote_, 0, 1, kBytes)).start();
    FAIL() << "it reads beyond its region";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), SLIME_ERR_INVALID);
    EXPECT_NE(std::string(error.what()).find("remote region"), std::string::npos);
  }
  Request receive = there_.any_peer().receive({}, 1).deadline(10ms).start();
  EXPECT_THROW(receive.wait(), Error);
  receive = there_.any_peer().receive({}, 1).start();
  receive.cancel();
  try {
    receive.wait();
    FAIL() << "it was cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), SLIME_ERR_CANCELLED);
    EXPECT_TRUE(error.quiet());
  }
  EXPECT_THROW((void)here_.find("127.0.0.1", 1ms), Error);
}

TEST_F(CppTest, RegionsAreFoundByName) {
  std::vector<Region> all;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "layer " + std::to_string(i);
    slime_memory terms = SLIME_MEMORY_INIT;
    terms.name = name.c_str();
    all.push_back(there_.register_memory(theirs_memory_, terms));
  }
  EXPECT_EQ(peer_.regions().size(), 100u);
  all.erase(all.begin(), all.begin() + 60);
  EXPECT_EQ(peer_.regions(10s).size(), 40u);
}

// Coroutines

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

struct Tally {
  int good = 0, bad = 0;
  std::thread::id thread;
};

Task move_again_and_again(Peer peer, const Region& mine, const Remote& theirs, uint64_t at,
                          int times, Tally* tally) {
  for (int i = 0; i < times; ++i) {
    co_await peer.write(mine.to(theirs, at, at, kBytes / 4));
    tally->thread = std::this_thread::get_id();
    ++tally->good;
  }
}

Task receive_nothing(Peer from, Tally* tally) {
  try {
    co_await from.receive({}, 1).deadline(10ms);
  } catch (const Error& error) {
    if (error.status() == SLIME_ERR_TIMEOUT) ++tally->bad;
  }
}

TEST_F(CppTest, CoroutinesGoOnInTheThreadThatResumesThem) {
  Tally tally;
  for (uint64_t i = 0; i < 4; ++i) {
    move_again_and_again(peer_, mine_, remote_, i * kBytes / 4, 100, &tally);
  }
  receive_nothing(here_.any_peer(), &tally);
  for (int ms = 0; tally.good + tally.bad < 401 && ms < 60'000; ++ms) {
    if (here_.resume_completed() == 0) std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(tally.good, 400);
  EXPECT_EQ(tally.bad, 1);
  EXPECT_EQ(tally.thread, std::this_thread::get_id());
  EXPECT_TRUE(same());
}

}  // namespace
}  // namespace slime
