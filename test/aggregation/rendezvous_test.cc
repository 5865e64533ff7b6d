// The rendezvous itself, at rank 0: strangers, ranks that go away, keys and deadlines.
#include <poll.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "base/net/visitors.h"
#include "test/aggregation/rendezvous_support.h"
#include "test/support/manual_clock.h"
#include "test/support/strangers.h"

namespace slime::aggregation {
namespace {

using rendezvous::Greeting;
using test::ManualClock;

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

}  // namespace
}  // namespace slime::aggregation
