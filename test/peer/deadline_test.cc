// Requests whose peer is stopped, gone, or comes back.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "test/peer/test_engine.h"

namespace slime {
namespace {

constexpr size_t kBytes = 64 << 20;
constexpr int64_t kMs = 1'000'000;

bool all_are(const std::vector<char>& memory, char expected) {
  return std::ranges::all_of(memory, [expected](char byte) { return byte == expected; });
}

// A process with an engine and a region full of 'x'. It is made while this process has one thread.
class OtherProcess {
 public:
  OtherProcess() : address(address_bytes()), region(SLIME_REGION_BYTES) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) serve(ends[1]);
    ::close(ends[1]);
    for (auto* blob : {&address, &region}) {
      // Less than PIPE_BUF, so it comes whole.
      EXPECT_EQ(::read(ends[0], blob->data(), blob->size()), static_cast<ssize_t>(blob->size()));
    }
    ::close(ends[0]);
  }
  ~OtherProcess() { end(); }
  // After SIGSTOP it has stopped.
  void signal(int number) const {
    ASSERT_EQ(::kill(pid_, number), 0);
    if (number != SIGSTOP) return;
    ASSERT_EQ(::waitpid(pid_, nullptr, WUNTRACED), pid_);
  }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

  std::vector<char> address, region;

 private:
  static size_t address_bytes() { return TestEngine().address().size(); }
  [[noreturn]] static void serve(int to) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    TestEngine engine;
    std::vector<char> memory(kBytes, 'x');
    for (const auto& blob : {engine.address(), engine.blob_of(engine.add(memory))}) {
      (void)!::write(to, blob.data(), blob.size());
    }
    for (;;) echo(engine);
  }
  // Sends notifications back to their senders.
  static void echo(TestEngine& engine) {
    slime_notification one;
    size_t count = 1;
    if (slime_notifications(engine.engine, &one, &count) != SLIME_OK) ::_exit(1);
    if (count == 0) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
    slime_request request = 0;
    if (slime_notify(engine.engine, one.peer, one.data, one.bytes, nullptr, &request) != SLIME_OK ||
        slime_release(engine.engine, request) != SLIME_OK ||
        slime_release(engine.engine, one.handle) != SLIME_OK) {
      ::_exit(1);
    }
  }

  pid_t pid_ = -1;
};

// Another process, and an engine here that knows its region.
class Deadline : public testing::Test {
 protected:
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

  OtherProcess other;  // first: this process has one thread until then
  std::vector<char> mine = std::vector<char>(kBytes, 'a');
  TestEngine here;
  const slime_region local = here.add(mine);
  const slime_peer peer = here.know(other.address);
  const slime_remote remote = here.remote(peer, other.region);
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
    std::ranges::fill(mine, 'z');
    other.signal(SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_TRUE(all_are(mine, 'z'));
    std::ranges::fill(mine, 'x');
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
  EXPECT_TRUE(all_are({mine.begin() + kBytes / 2, mine.end()}, 'x'));
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
