// Requests whose peer is stopped, gone, or comes back.
#include <chrono>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "test/support/other_process.h"

namespace slime {
namespace {

constexpr size_t kBytes = 64 << 20;
constexpr int64_t kMs = 1'000'000;

// What engines of this process say.
class Log {
 public:
  Log() { EXPECT_EQ(slime_set_log(take, this, SLIME_LOG_INFO), SLIME_OK); }
  ~Log() { EXPECT_EQ(slime_set_log(nullptr, nullptr, 0), SLIME_OK); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  bool has(const char* words) {
    const std::lock_guard lock(mutex_);
    return text_.find(words) != std::string::npos;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    text_.clear();
  }

 private:
  static void take(void* user, int, const char* text) {
    Log& log = *static_cast<Log*>(user);
    const std::lock_guard lock(log.mutex_);
    log.text_ += text;
  }

  std::mutex mutex_;
  std::string text_;
};

class Deadline : public WithOtherProcess {
 protected:
  Deadline() : WithOtherProcess(kBytes) {}
  slime_assignment piece(uint64_t offset, uint64_t bytes) const {
    return {local, remote, offset, offset, bytes};
  }
  slime_request notify(const std::string& text, int64_t deadline_ns = 0) {
    return here.notify(peer, text, deadline_ns);
  }
  std::vector<std::string> fetch() {
    std::vector<std::string> texts;
    for (const auto& [from, text] : here.fetch(64)) texts.push_back(text);
    return texts;
  }
  void connect() { ASSERT_EQ(here.run(peer, SLIME_READ, piece(0, 1)).status, SLIME_OK); }

  // A request that is overdue or cancelled while the peer is stopped, which then goes on in time:
  // it ends, and other requests go on over the same link. Tried again where this process was too
  // slow, or so quick that the request had not begun.
  template <typename End>
  void expect_fences(int op, End end) {
    for (int i = 0; i < 20; ++i) {
      log.clear();
      other.signal(SIGSTOP);
      const slime_request request = here.begin(peer, op, piece(0, kBytes), 100 * kMs);
      end(request);
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      other.signal(SIGCONT);
      const slime_result result = here.end(request);
      EXPECT_NE(result.status, SLIME_OK);
      EXPECT_EQ(here.run(peer, SLIME_READ, piece(0, 1)).status, SLIME_OK);
      if (log.has("the link is given up")) continue;
      EXPECT_EQ(result.quiet, 1);
      if (log.has("it carried a request that was overdue or cancelled")) return;
    }
    ADD_FAILURE() << "it has not ended its rails";
  }

  Log log;
};

// After the time-out this program has its memory for itself, also when the peer goes on.
TEST_F(Deadline, EndsAReadWhosePeerIsStoppedAndTheMemoryIsQuiet) {
  const slime_assignment all = piece(0, kBytes);
  connect();
  for (const int op : {SLIME_READ, SLIME_WRITE}) {
    other.signal(SIGSTOP);
    const slime_request request = here.begin(peer, op, all, 200 * kMs);
    const slime_result result = here.end(request);
    EXPECT_EQ(result.status, SLIME_ERR_TIMEOUT) << result.text;
    EXPECT_LT(result.bytes, kBytes);
    set_all(mine, 'z');
    other.signal(SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_TRUE(all_are(mine, 'z'));
    set_all(mine, 'x');
    const slime_result again = here.run(peer, op, all);
    EXPECT_EQ(again.status, SLIME_OK) << again.text;
    EXPECT_TRUE(all_are(mine, 'x'));
  }
}

TEST_F(Deadline, LetsOtherRequestsGoOnOverANewLink) {
  connect();
  other.signal(SIGSTOP);
  const slime_assignment first = piece(0, kBytes / 2);
  const slime_assignment second = piece(kBytes / 2, kBytes / 2);
  const slime_request brief = here.begin(peer, SLIME_READ, first, 100 * kMs);
  const slime_request patient = here.begin(peer, SLIME_READ, second);
  EXPECT_EQ(here.end(brief).status, SLIME_ERR_TIMEOUT);
  other.signal(SIGCONT);
  const slime_result result = here.end(patient);
  EXPECT_EQ(result.status, SLIME_OK) << result.text;
  EXPECT_TRUE(all_are(std::span(mine).subspan(kBytes / 2), 'x'));
}

TEST_F(Deadline, EndsAReadWithItsRails) {
  connect();
  expect_fences(SLIME_READ, [](slime_request) {});
  set_all(mine, 'z');
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(all_are(mine, 'z'));
}

TEST_F(Deadline, EndsAWriteWithItsRails) {
  connect();
  expect_fences(SLIME_WRITE, [](slime_request) {});
  set_all(other.memory(), 'z');
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(all_are(other.memory(), 'z'));
}

TEST_F(Deadline, ComesWithCancel) {
  connect();
  for (const int op : {SLIME_READ, SLIME_WRITE}) {
    expect_fences(op, [this](slime_request request) { here.cancel(request); });
  }
  other.signal(SIGSTOP);
  slime_request weak = 0, expected = 0, strong = 0;
  slime_result may_come = SLIME_RESULT_INIT;
  // Tried again where the thread that has the peer had not written it by then.
  for (int i = 1; i <= 20 && may_come.quiet; ++i) {
    ASSERT_EQ(slime_signal(here.engine, peer, remote, 0, 1, 0, nullptr, &weak), SLIME_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * i));
    here.cancel(weak);
    may_come = here.end(weak);
    EXPECT_EQ(may_come.status, SLIME_ERR_CANCELLED) << may_come.text;
  }
  EXPECT_EQ(may_come.quiet, 0);
  std::string room(1, '?');
  ASSERT_EQ(slime_expect(here.engine, peer, 1, 1, nullptr, &expected), SLIME_OK);
  const slime_request moves = here.begin(peer, SLIME_WRITE, piece(0, kBytes));
  ASSERT_EQ(slime_signal(here.engine, peer, remote, 0, 1, 1, nullptr, &strong), SLIME_OK);
  for (const slime_request request : {notify("a"), expected, here.receive(peer, room, 1),
                                      here.receive(SLIME_ANY_PEER, room, 1), strong, moves}) {
    here.cancel(request);
    const slime_result result = here.end(request);
    EXPECT_EQ(result.status, SLIME_ERR_CANCELLED) << result.text;
    EXPECT_EQ(slime_cancel(here.engine, request), SLIME_ERR_INVALID);
  }
  EXPECT_EQ(slime_cancel(here.engine, peer), SLIME_ERR_INVALID);
  other.signal(SIGCONT);
  const slime_request done = here.begin(peer, SLIME_READ, piece(0, 1));
  EXPECT_EQ(here.end(done).status, SLIME_OK);
  EXPECT_EQ(slime_cancel(here.engine, done), SLIME_ERR_INVALID);
}

// Requests that are overdue end the link again and again; messages go on over the next one, also
// those that the peer reads.
TEST_F(Deadline, MessagesComeOnceAndInOrderWhenLinksAreGivenUp) {
  constexpr size_t kRounds = 6, kEach = 100;
  connect();
  std::vector<slime_request> requests;
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kEach; ++i) {
      if (i == kEach / 2) other.signal(SIGSTOP);
      std::string text = std::to_string(requests.size()) + ' ';
      if (i % 10 == 9) text.resize(100'000, 'x');
      requests.push_back(notify(text));
    }
    EXPECT_EQ(here.run(peer, SLIME_WRITE, piece(0, kBytes), 100 * kMs).status, SLIME_ERR_TIMEOUT);
    other.signal(SIGCONT);
  }
  size_t next = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (next < requests.size() && std::chrono::steady_clock::now() < end) {
    for (const std::string& text : fetch()) {
      EXPECT_EQ(text.substr(0, text.find(' ')), std::to_string(next));
      EXPECT_EQ(text.size(), next % 10 == 9 ? 100'000 : std::to_string(next).size() + 1);
      ++next;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(next, requests.size());
  for (const slime_request request : requests) {
    const slime_result result = here.end(request);
    EXPECT_EQ(result.status, SLIME_OK) << result.text;
  }
  EXPECT_TRUE(fetch().empty());
}

TEST_F(Deadline, AMessageEndsWhenThePeerDoesNotTakeIt) {
  connect();
  other.signal(SIGSTOP);
  const slime_request kept = notify("kept");
  const slime_request brief = notify("brief", 100 * kMs);
  const slime_result result = here.end(brief);
  EXPECT_EQ(result.status, SLIME_ERR_TIMEOUT);
  EXPECT_NE(std::strstr(result.text, "may have"), nullptr) << result.text;
  slime_request expected = 0;
  ASSERT_EQ(slime_expect(here.engine, peer, 1, 1, nullptr, &expected), SLIME_OK);
  other.end();
  EXPECT_EQ(here.run(peer, SLIME_READ, piece(0, 100)).status, SLIME_ERR_REMOTE);
  EXPECT_EQ(here.end(kept).status, SLIME_ERR_REMOTE);
  EXPECT_EQ(here.end(expected).status, SLIME_ERR_REMOTE);
  ASSERT_EQ(slime_expect(here.engine, peer, 1, 1, nullptr, &expected), SLIME_OK);
  EXPECT_EQ(here.end(expected).status, SLIME_ERR_REMOTE);
  EXPECT_EQ(here.end(notify("nobody")).status, SLIME_ERR_REMOTE);
}

TEST_F(Deadline, HoldsBeforeThePeerIsConnected) {
  other.signal(SIGSTOP);
  const slime_result result = here.run(peer, SLIME_READ, piece(0, 100), 100 * kMs);
  EXPECT_EQ(result.status, SLIME_ERR_TIMEOUT);
  EXPECT_NE(std::strstr(result.text, "not connected yet"), nullptr) << result.text;
  other.signal(SIGCONT);
  const slime_result again = here.run(peer, SLIME_READ, piece(0, 100));
  EXPECT_EQ(again.status, SLIME_OK) << again.text;
}

TEST_F(Deadline, APeerThatHasEndedIsGone) {
  const slime_assignment one = piece(0, 100);
  ASSERT_EQ(here.run(peer, SLIME_READ, one).status, SLIME_OK);
  EXPECT_EQ(here.info(peer).state, SLIME_PEER_UP);
  EXPECT_GT(here.info(peer).rails_up, 0u);
  EXPECT_EQ(here.info(peer).rails_up, here.info(peer).rails);
  other.end();
  const slime_result result = here.run(peer, SLIME_READ, one);
  EXPECT_EQ(result.status, SLIME_ERR_REMOTE) << result.text;
  EXPECT_EQ(here.info(peer).state, SLIME_PEER_GONE);
  EXPECT_EQ(here.info(peer).rails, 0u);
  EXPECT_EQ(slime_connect(here.engine, peer, -1), SLIME_ERR_REMOTE);
  EXPECT_NE(std::strstr(slime_last_error(), "refused"), nullptr) << slime_last_error();
}

}  // namespace
}  // namespace slime
