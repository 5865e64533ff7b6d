// The rendezvous itself: strangers, liars, keys and deadlines.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "aggregation/introduction.h"
#include "base/net/visitors.h"
#include "rendezvous/messages.h"
#include "test/aggregation/support.h"
#include "test/support/manual_clock.h"
#include "test/support/strangers.h"
#include "test/support/unused_address.h"

namespace slime::aggregation {
namespace {

Introduction introduction_of(uint32_t rank, uint32_t ranks) {
  Introduction introduction;
  introduction.rank = rank;
  introduction.ranks = ranks;
  introduction.ready = 1;
  introduction.handle.fill(static_cast<std::byte>(rank + 1));
  return introduction;
}

SecretKey key_of(const std::string& text) {
  return SecretKey::from_bytes(std::as_bytes(std::span(text))).value();
}

using rendezvous::Answer;
using rendezvous::bytes_of;
using rendezvous::Greeting;
using rendezvous::Hello;
using rendezvous::Terms;
using test::ManualClock;

// A hello without a key.
Hello hello_of(const Introduction& introduction) {
  Hello hello;
  hello.rank = introduction.rank;
  hello.ranks = introduction.ranks;
  hello.blob_bytes = sizeof introduction;
  std::ranges::copy(bytes_of(introduction), hello.blob.begin());
  return hello;
}

class Rendezvous : public testing::Test {
 protected:
  static constexpr uint64_t kMinuteNs = 60'000'000'000, kHourNs = 60 * kMinuteNs;

  // Long: what must happen in time happens. Who is to be late has a clock of its own.
  static Terms meeting(const Clock& clock = SteadyClock::instance()) {
    return {
        .where = {}, .key = {}, .limit_ns = kMinuteNs, .hello_limit_ns = kMinuteNs, .clock = clock};
  }
  Result<std::vector<Introduction>> meet_there(const Terms& terms, const Introduction& own) const {
    return meet(terms, address_, own);
  }
  // Rank 0 in the background; `rest` meanwhile.
  Result<std::vector<Introduction>> host(const Terms& terms, uint32_t ranks,
                                         const std::function<void()>& rest) const {
    Result<std::vector<Introduction>> met = fail(Error{});
    std::thread thread([&] { met = meet_there(terms, introduction_of(0, ranks)); });
    rest();
    thread.join();
    return met;
  }
  // A stranger's connection, once somebody listens.
  Fd connect() const {
    for (int i = 0; i < 6000; ++i) {
      auto fd = start_connect(address_);
      Error error;
      Status status = Status::kAgain;
      while (fd && (status = finish_connect(*fd, address_, &error)) == Status::kAgain) usleep(1000);
      if (fd && status == Status::kOk) return std::move(*fd);
      usleep(10'000);
    }
    return Fd();
  }
  template <typename T>
  static bool receive(const Fd& fd, T* message) {
    size_t done = 0;
    Error error;
    for (int i = 0; i < 60'000; ++i) {
      const Status status = receive_message(fd, bytes_of(*message), &done, &error);
      if (status == Status::kOk) return true;
      if (status != Status::kAgain) return false;
      usleep(1000);
    }
    return false;
  }
  template <typename T>
  static void send(const Fd& fd, const T& message) {
    size_t done = 0;
    Error error;
    EXPECT_EQ(send_message(fd, bytes_of(message), &done, &error), Status::kOk) << error.what;
  }
  // The reason in the answer that comes next.
  static std::string refusal_on(const Fd& fd) {
    Answer answer;
    EXPECT_TRUE(receive(fd, &answer));
    EXPECT_EQ(answer.outcome, rendezvous::Outcome::kRefused);
    std::string reason;
    for (char c = 0; reason.size() < answer.bytes && receive(fd, &c);) reason += c;
    return reason;
  }
  static void expect_fails(const Result<std::vector<Introduction>>& met, const std::string& part) {
    ASSERT_FALSE(met);
    EXPECT_NE(met.error().what.find(part), std::string::npos) << met.error().what;
  }

  const SocketAddress address_ = SocketAddress::parse(test::unused_address()).value();
  LogCapture log_;
};

TEST_F(Rendezvous, AllGetAllIntroductions) {
  std::vector<Result<std::vector<Introduction>>> met(4, fail(Error{}));
  each_rank(4, [&](uint32_t rank) {
    // Rank 0 last: the others try until it is there.
    if (rank == 0) usleep(200'000);
    met[rank] = meet_there(meeting(), introduction_of(rank, 4));
  });
  for (const auto& introductions : met) {
    ASSERT_TRUE(introductions) << introductions.error().what;
    ASSERT_EQ(introductions->size(), 4u);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ((*introductions)[rank].rank, rank);
      EXPECT_EQ((*introductions)[rank].handle[5], static_cast<std::byte>(rank + 1));
    }
    EXPECT_TRUE(handles_of(*introductions, introduction_of(0, 4)));
  }
}

TEST_F(Rendezvous, StrangersChangeNothing) {
  constexpr uint64_t kPatienceNs = 2'000'000'000;  // more than between two lines about strangers
  std::mt19937 random(7);
  Result<std::vector<Introduction>> joined = fail(Error{});
  ManualClock clock;
  Terms impatient = meeting(clock);
  impatient.limit_ns += kHourNs;
  impatient.hello_limit_ns = kPatienceNs;
  const auto not_in_time = [this] {
    return log_.count(LogLevel::kWarning, "no whole hello in time");
  };
  const auto met = host(impatient, 2, [&] {
    std::vector<Fd> silent;
    for (int i = 0; i < 70; ++i) silent.push_back(connect());  // more than it listens to at once
    for (int i = 0; i < 3000 && not_in_time() == 0; ++i) {
      clock.pass(kPatienceNs);
      usleep(20'000);
    }
    for (int i = 0; i < 30; ++i) {
      const Fd garbage = connect();
      std::vector<std::byte> bytes(random() % 400);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      size_t done = 0;
      Error error;
      (void)send_message(garbage, bytes, &done, &error);
    }
    Hello other_version = hello_of(introduction_of(1, 2));
    other_version.prefix.version = 1;
    send(connect(), other_version);
    Introduction other_introduction = introduction_of(1, 2);
    other_introduction.magic = 5;
    send(connect(), hello_of(other_introduction));
    Hello too_long = hello_of(introduction_of(1, 2));
    too_long.blob_bytes = ~0u;
    send(connect(), too_long);
    Hello too_short = hello_of(introduction_of(1, 2));
    --too_short.blob_bytes;
    send(connect(), too_short);
    Hello two_ranks = hello_of(introduction_of(0, 2));
    two_ranks.rank = 1;
    send(connect(), two_ranks);
    clock.pass(VisitorPort::kGraceNs);  // a rank may have the place of a silent one now
    joined = meet_there(meeting(), introduction_of(1, 2));
  });
  ASSERT_TRUE(met) << met.error().what;
  ASSERT_TRUE(joined) << joined.error().what;
  EXPECT_EQ((*met)[1].handle, introduction_of(1, 2).handle);
  EXPECT_GE(not_in_time(), 1u);
}

TEST_F(Rendezvous, ManyStrangersDoNotDelayARank) {
  test::Strangers strangers;
  SLIME_NEEDS_MANY(strangers);
  Terms patient = meeting();
  patient.hello_limit_ns = kHourNs;
  const auto met = host(patient, 2, [&] {
    const Fd first = connect();
    strangers.come(address_, test::Strangers::kMany);
    EXPECT_TRUE(meet_there(meeting(), introduction_of(1, 2)));
  });
  EXPECT_TRUE(met) << met.error().what;
  EXPECT_LE(log_.count(LogLevel::kWarning, "turned away"), 60u) << "one line a second";
}

TEST_F(Rendezvous, StrangersAreInTheErrorOfARankThatNeverCame) {
  ManualClock clock;
  const auto met = host(meeting(clock), 2, [&] {
    for (int i = 0; i < 3; ++i) {
      const Fd garbage = connect();
      Greeting greeting;
      EXPECT_TRUE(receive(garbage, &greeting));
      send(garbage, hello_of(introduction_of(1, 3)));
      EXPECT_NE(refusal_on(garbage).find("1 of 3"), std::string::npos);
    }
    clock.pass(kMinuteNs);
  });
  expect_fails(met, "3 strangers");
  EXPECT_EQ(log_.count(LogLevel::kWarning, "turned away"), 1u);
}

TEST_F(Rendezvous, RanksOfAnotherVersionAreInTheErrorToo) {
  ManualClock clock;
  const auto met = host(meeting(clock), 2, [&] {
    Hello other = hello_of(introduction_of(1, 2));
    other.prefix.version = 1;
    for (int i = 0; i < 2; ++i) {
      const Fd rank = connect();
      send(rank, other);
      Greeting greeting;
      char more = 0;
      EXPECT_TRUE(receive(rank, &greeting));
      EXPECT_FALSE(receive(rank, &more)) << "it is turned away";
    }
    clock.pass(kMinuteNs);
  });
  expect_fails(met, "of 2 callers: it speaks another version of the rendezvous");
}

// The blobs that the judge makes are more than sockets hold, so a rank that reads nothing cannot be
// told. The rank after it is told why, instead of finding its connection closed.
TEST_F(Rendezvous, OneThatCannotBeToldIsNamedToTheOthers) {
  ManualClock clock;
  Terms terms = meeting(clock);
  terms.ranks = 3;
  const rendezvous::HostOptions options{
      .own = "", .judge = [](const rendezvous::Claim&) -> Result<std::string> {
        return std::string(16 << 20, 'x');
      }};
  auto listener = listen_on(address_);
  ASSERT_TRUE(listener) << listener.error().what;
  Result<rendezvous::Gathered> gathered = fail(Error{});
  std::thread thread([&, fd = std::move(*listener)]() mutable {
    gathered = rendezvous::host_group(terms, std::move(fd), options);
  });
  const Fd deaf = connect(), other = connect();
  Greeting greeting;
  send(deaf, hello_of(introduction_of(1, 3)));
  EXPECT_TRUE(receive(deaf, &greeting));
  send(other, hello_of(introduction_of(2, 3)));
  EXPECT_TRUE(receive(other, &greeting));
  pollfd begun{deaf.get(), POLLIN, 0};
  EXPECT_EQ(poll(&begun, 1, 60'000), 1);  // the answer begins to come
  clock.pass(kMinuteNs);
  Answer answer;
  EXPECT_TRUE(receive(other, &answer));
  EXPECT_EQ(answer.outcome, rendezvous::Outcome::kFailed);
  thread.join();
  ASSERT_FALSE(gathered);
  EXPECT_NE(gathered.error().what.find("rank 1 at "), std::string::npos) << gathered.error().what;
}

TEST_F(Rendezvous, ARankThatGoesAwayMayComeAgain) {
  Result<std::vector<Introduction>> joined = fail(Error{});
  const auto met = host(meeting(), 2, [&] {
    {
      const Fd first = connect();
      Greeting greeting;
      EXPECT_TRUE(receive(first, &greeting));
      send(first, hello_of(introduction_of(1, 3)));  // and is turned away, so rank 1 is free
      EXPECT_NE(refusal_on(first).find("1 of 3"), std::string::npos);
    }
    joined = meet_there(meeting(), introduction_of(1, 2));
  });
  EXPECT_TRUE(met) << met.error().what;
  EXPECT_TRUE(joined) << joined.error().what;
}

TEST_F(Rendezvous, ARankThatDiesWhileOthersAreAwaitedMayComeAgain) {
  Result<std::vector<Introduction>> joined[2] = {fail(Error{}), fail(Error{})};
  const auto met = host(meeting(), 3, [&] {
    {
      const Fd first = connect();
      send(first, hello_of(introduction_of(1, 3)));
      usleep(100'000);
    }
    for (int i = 0; i < 6000 && log_.count(LogLevel::kWarning, "went away again") == 0; ++i) {
      usleep(10'000);
    }
    each_rank(2, [&](uint32_t i) { joined[i] = meet_there(meeting(), introduction_of(i + 1, 3)); });
  });
  EXPECT_TRUE(met) << met.error().what;
  for (const auto& introductions : joined) EXPECT_TRUE(introductions) << introductions.error().what;
}

// Of two with one number the second hears that the first is there, so that the time may pass then.
TEST_F(Rendezvous, NamesWhoIsMissingAndWhoIsThereTwice) {
  ManualClock clock;
  Result<std::vector<Introduction>> joined[2] = {fail(Error{}), fail(Error{})};
  const auto met = host(meeting(clock), 4, [&] {
    each_rank(2, [&](uint32_t i) {
      joined[i] = meet_there(meeting(), introduction_of(2, 4));
      clock.pass(kMinuteNs);
    });
  });
  expect_fails(met, "rank 1, 3 of 4 did not come in time; last turned away: ");
  expect_fails(met, "has come already");
  ASSERT_FALSE(joined[0] || joined[1]);
  const bool second_refused = joined[1].error().status == Status::kInvalid;
  EXPECT_EQ(joined[second_refused ? 1 : 0].error().status, Status::kInvalid);
  expect_fails(joined[second_refused ? 1 : 0], "rank 2, which has come already");
  expect_fails(joined[second_refused ? 0 : 1], "rank 1, 3 of 4 did not come in time");
}

TEST_F(Rendezvous, NumbersOfRanksMustAgree) {
  ManualClock clock;
  const auto met = host(meeting(clock), 2, [&] {
    const auto joined = meet_there(meeting(), introduction_of(1, 3));
    clock.pass(kMinuteNs);
    expect_fails(joined, "rank 1 of 3, and rank 0 says there are 2");
    EXPECT_EQ(joined.error().status, Status::kInvalid);
  });
  expect_fails(met, "rank 1 of 2 did not come in time");
  expect_fails(met, "rank 1 of 3");
}

TEST_F(Rendezvous, KeysMustAgree) {
  if (auto loaded = load_hmac(); !loaded) GTEST_SKIP() << loaded.error().what;
  const SecretKey right = key_of("0123456789abcdef0123456789abcdef");
  const SecretKey wrong = key_of("fedcba9876543210fedcba9876543210");
  Terms keyed = meeting(), other = meeting(), good = meeting();
  keyed.key = good.key = right;
  other.key = wrong;
  Result<std::vector<Introduction>> joined = fail(Error{});
  const auto met = host(keyed, 2, [&] {
    expect_fails(meet_there(meeting(), introduction_of(1, 2)),
                 "rank 0 at " + address_.to_string() + " has a key, and rank 1 has none");
    expect_fails(meet_there(other, introduction_of(1, 2)), "does not have our key");
    joined = meet_there(good, introduction_of(1, 2));
  });
  EXPECT_TRUE(met) << met.error().what;
  EXPECT_TRUE(joined) << joined.error().what;
  ManualClock clock;
  const auto open = host(meeting(clock), 2, [&] {
    expect_fails(meet_there(keyed, introduction_of(1, 2)), "has no key, and rank 1 has one");
    clock.pass(kMinuteNs);
  });
  expect_fails(open, "rank 1 of 2 did not come in time");
}

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
