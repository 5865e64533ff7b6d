// What a rank sees through: a false rank 0, and introductions that are not those of a group.
#include <unistd.h>

#include <array>
#include <thread>

#include "test/aggregation/rendezvous_support.h"
#include "test/support/manual_clock.h"

namespace slime::aggregation {
namespace {

using rendezvous::Greeting;
using test::ManualClock;

// Somebody listens where rank 0 should.
class FalseHost : public Rendezvous {
 protected:
  Result<std::vector<Introduction>> join_at(const std::function<void(const Fd&)>& act,
                                            const SecretKey& key = {}) {
    const Fd listener = listen_on(address_).value();
    Result<std::vector<Introduction>> joined = fail(Error{});
    Terms terms = meeting(clock_);
    terms.key = key;
    std::thread guest([&] { joined = meet_there(terms, introduction_of(1, 3)); });
    Accepted accepted;
    Error error;
    while (accept_one(listener, &accepted, &error) == Status::kAgain) usleep(1000);
    act(accepted.fd);
    guest.join();
    return joined;
  }
  static void greet(const Fd& fd, const Greeting& greeting) {
    Hello hello;
    send(fd, greeting);
    EXPECT_TRUE(receive(fd, &hello));
  }
  // An answer of this many bytes, of which none are sent yet.
  static void answer(const Fd& fd, rendezvous::Outcome outcome, uint32_t bytes) {
    greet(fd, {});
    Answer answer;
    answer.outcome = outcome;
    answer.bytes = bytes;
    send(fd, answer);
  }
  void let_the_time_pass() { clock_.pass(kHourNs); }

 private:
  ManualClock clock_;  // of the guest
};

TEST_F(FalseHost, IsSeenThrough) {
  expect_fails(join_at([](const Fd& fd) { send(fd, Hello{}); }), "no rank 0 of this library");
  expect_fails(join_at([](const Fd& fd) {
                 Greeting old;
                 old.prefix.version = 1;
                 send(fd, old);
               }),
               "it speaks another version of the rendezvous");
  expect_fails(join_at([this](const Fd&) { let_the_time_pass(); }),
               "does another program listen there?");
  expect_fails(join_at([](const Fd& fd) { answer(fd, rendezvous::Outcome::kGathered, 1u << 30); }),
               "no answer that can be (1073741824 bytes for 3 ranks)");
  expect_fails(join_at([](const Fd& fd) { answer(fd, rendezvous::Outcome::kRefused, 5000); }),
               "no answer that can be (5000 bytes for 3 ranks)");
  expect_fails(join_at([](const Fd& fd) {
                 answer(fd, rendezvous::Outcome::kRefused, 4);
                 send(fd, std::array<char, 4>{'\x1b', '\x1b', '\n', '\x80'});  // not for a terminal
                 send(fd, Mac{});
               }),
               "turned us away: ????");
  expect_fails(join_at([this](const Fd& fd) {
                 answer(fd, rendezvous::Outcome::kGathered, 3 * (4 + sizeof(Introduction)));
                 send(fd, introduction_of(0, 3));
                 let_the_time_pass();
               }),
               "did not say who the others are in time");
}

TEST_F(FalseHost, CannotMakeARankReadPastItsAnswer) {
  // A length that is more than there is, one blob too few, and a byte too many.
  const std::array<uint32_t, 3> too_long{0, 0, 1}, zeros{};
  const auto malformed = [&](const auto& content) {
    expect_fails(join_at([&](const Fd& fd) {
                   answer(fd, rendezvous::Outcome::kGathered, sizeof content);
                   send(fd, content);
                   send(fd, Mac{});
                 }),
                 "malformed answer");
  };
  malformed(too_long);
  malformed(std::array<uint32_t, 2>{});
  malformed(std::array<std::byte, 13>{});
  malformed(std::array<uint32_t, 3>{~0u});
  // Three blobs of no bytes are an answer, but of no introductions.
  const auto joined = join_at([&](const Fd& fd) {
    answer(fd, rendezvous::Outcome::kGathered, sizeof zeros);
    send(fd, zeros);
    send(fd, Mac{});
  });
  ASSERT_TRUE(joined) << joined.error().what;
  EXPECT_FALSE(handles_of(*joined, introduction_of(1, 3)));
}

TEST_F(FalseHost, WhoWasResetComesAgain) {
  const Fd listener = listen_on(address_).value();
  Result<std::vector<Introduction>> joined = fail(Error{});
  std::thread guest([&] { joined = meet_there(meeting(), introduction_of(1, 3)); });
  int connections = 0;
  for (int i = 0; i < 60'000 && connections < 3; ++i, usleep(1000)) {
    Accepted accepted;
    Error error;
    if (accept_one(listener, &accepted, &error) != Status::kOk) continue;
    greet(accepted.fd, {});
    if (++connections < 3) abort_connection(std::move(accepted.fd));
  }
  guest.join();
  EXPECT_EQ(connections, 3);
  expect_fails(joined, "gave up before all ranks had come");
}

TEST_F(FalseHost, CannotForgeWhatAKeyProves) {
  if (auto loaded = load_hmac(); !loaded) GTEST_SKIP() << loaded.error().what;
  const auto joined = join_at(
      [](const Fd& fd) {
        Greeting greeting;
        greeting.key_wanted = 1;
        greet(fd, greeting);
        Answer answer;
        answer.bytes = 3 * sizeof(uint32_t);
        send(fd, answer);
        send(fd, std::array<uint32_t, 3>{});
        send(fd, Mac{});
      },
      key_of("0123456789abcdef0123456789abcdef"));
  expect_fails(joined, "does not have our key");
}

// Introductions that came whole, but are not those of a group.
TEST(Introductions, AreChecked) {
  const Introduction own = introduction_of(0, 2);
  const auto fails = [&](const Introduction& other, const std::string& part) {
    const Introduction introductions[] = {own, other};
    const auto handles = handles_of(introductions, own);
    ASSERT_FALSE(handles);
    EXPECT_NE(handles.error().what.find(part), std::string::npos) << handles.error().what;
  };
  Introduction introduction = introduction_of(1, 2);
  introduction.version = 9;
  fails(introduction, "version 9");
  fails(introduction_of(1, 3), "rank 1 of 3");
  fails(introduction_of(2, 2), "rank 2 of 2");
  fails(introduction_of(0, 2), "do two ranks have one number");
  introduction = introduction_of(1, 2);
  introduction.mode = 200;
  fails(introduction, "mode unknown");
  introduction = introduction_of(1, 2);
  introduction.ready = 0;
  fails(introduction, "rank 1 failed before the ranks met");
}

}  // namespace
}  // namespace slime::aggregation
