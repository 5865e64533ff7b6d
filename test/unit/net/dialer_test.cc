// Connecting to a host with several addresses, over a network that starts or flaps.
#include "base/net/dialer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/unused_address.h"

namespace slime {
namespace {

using testing::HasSubstr;

Status finish(Dialer* dialer, uint64_t now_ns, Error* error) {
  for (;;) {
    const Status status = dialer->progress(now_ns, error);
    if (status != Status::kAgain) return status;
  }
}

TEST(Dialer, ReportsARefusalAtOnceOrTriesAgain) {
  const SocketAddress address = *SocketAddress::parse(test::unused_address());
  Error error;
  Dialer once(address, {});
  Status status;
  while ((status = once.progress(0, &error)) == Status::kAgain) {
  }
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_EQ(error.code, ECONNREFUSED);

  Dialer patient(address, {.retry = Dialer::Retry::kAll, .pause_ns = 100});
  while (patient.last_failure().empty()) ASSERT_EQ(patient.progress(0, &error), Status::kAgain);
  EXPECT_NE(patient.last_failure().find("nobody listens there"), std::string::npos);
  EXPECT_FALSE(patient.fd()) << "it makes no connection during the pause";
  EXPECT_EQ(patient.progress(99, &error), Status::kAgain);
  EXPECT_FALSE(patient.fd());
  const Fd listener = *listen_on(address);
  while ((status = patient.progress(100, &error)) == Status::kAgain) {
  }
  EXPECT_EQ(status, Status::kOk) << error.what;
}

TEST(Dialer, ConnectsAgainAfterAnAbort) {
  const Fd listener = *listen_on(*SocketAddress::parse("127.0.0.1"));
  Dialer dialer(*local_address(listener), {.pause_ns = 0});
  Error error;
  while (dialer.progress(0, &error) == Status::kAgain) {
  }
  const Fd first = std::move(dialer.fd());
  Error reset{Status::kRemote, ECONNRESET, "reset"};
  EXPECT_EQ(dialer.again(0, &reset), Status::kAgain);
  Error closed{Status::kRemote, 0, "closed in order"};
  Status status;
  while ((status = dialer.progress(0, &error)) == Status::kAgain) {
  }
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(dialer.again(0, &closed), Status::kRemote) << "an orderly end is final";
}

// The host is there, so that the refusal at its other address is not final.
TEST(Dialer, ConnectsAgainThoughTheNextAddressRefuses) {
  const Fd listener = *listen_on(*SocketAddress::parse("127.0.0.1"));
  const SocketAddress there = *local_address(listener);
  Dialer dialer(Addresses{there, *SocketAddress::parse(test::unused_address())}, {.pause_ns = 0});
  Error error;
  ASSERT_EQ(finish(&dialer, 0, &error), Status::kOk);
  Error reset{Status::kRemote, ECONNRESET, "reset"};
  ASSERT_EQ(dialer.again(0, &reset), Status::kAgain);
  EXPECT_EQ(finish(&dialer, 0, &error), Status::kOk) << error.what;
  EXPECT_EQ(dialer.peer(), there);
}

// As ::1 where the kernel has no IPv6. No connection goes to 224.0.0.1: ENETUNREACH.
TEST(Dialer, AVersionThatThisHostLacksDoesNotHideARefusal) {
  const SocketAddress nowhere = *SocketAddress::parse("224.0.0.1:9");
  const SocketAddress nobody = *SocketAddress::parse(test::unused_address());
  Error error;
  for (const Addresses& addresses : {Addresses{nowhere, nobody}, Addresses{nobody, nowhere}}) {
    Dialer both(addresses, {.pause_ns = 0});
    EXPECT_EQ(finish(&both, 0, &error), Status::kRemote);
    EXPECT_EQ(error.code, ECONNREFUSED) << "else a caller would try again";
  }
  Dialer alone(nowhere, {.pause_ns = 100});
  EXPECT_EQ(alone.progress(0, &error), Status::kAgain) << "it may get a route";
  EXPECT_EQ(alone.due_ns(), 100u);
}

// Until one answers, and then to no other.
TEST(Dialer, GoesFromAddressToAddress) {
  Fd listener = *listen_on(*SocketAddress::parse("127.0.0.1"));
  const SocketAddress there = *local_address(listener);
  const SocketAddress nobody = *SocketAddress::parse(test::unused_address());
  int rounds = 0;
  const auto peers = [&]() -> Result<Addresses> {
    if (++rounds == 1) return fail(make_error(Status::kConfig, 0, "no such name"));
    return Addresses{nobody, there};
  };
  Dialer dialer(peers, {.retry = Dialer::Retry::kAll, .pause_ns = 0});
  Error error;
  ASSERT_EQ(dialer.progress(0, &error), Status::kAgain);
  EXPECT_EQ(dialer.last_failure(), "no such name");
  ASSERT_EQ(finish(&dialer, 0, &error), Status::kOk) << error.what;
  EXPECT_EQ(dialer.peer(), there);
  EXPECT_EQ(rounds, 2);
  dialer.stay();
  listener.reset();
  Error reset{Status::kRemote, ECONNRESET, "reset"};
  EXPECT_EQ(dialer.again(0, &reset), Status::kAgain);
  EXPECT_EQ(finish(&dialer, 0, &error), Status::kRemote);
  EXPECT_EQ(error.code, ECONNREFUSED) << "the listener at that address has closed";
  EXPECT_EQ(rounds, 2);
}

// A refusal at one address is not final before all have been tried, and then all are named.
TEST(Dialer, FailsWhenAllAddressesHaveRefused) {
  const Addresses nobody{*SocketAddress::parse(test::unused_address()),
                         *SocketAddress::parse(test::unused_address())};
  Dialer dialer(nobody, {});
  Error error;
  EXPECT_EQ(finish(&dialer, 0, &error), Status::kRemote);
  for (const SocketAddress& one : nobody) EXPECT_THAT(error.what, HasSubstr(one.to_string()));
}

// 192.0.2.1 (RFC 5737) is no address of this host, so that bind() fails until it is.
TEST(Dialer, WaitsForANetworkThatStarts) {
  const SocketAddress absent = *SocketAddress::parse("192.0.2.1");
  const SocketAddress peer = *SocketAddress::parse("192.0.2.2:9");
  Dialer dialer(peer, {.pause_ns = 100, .source = &absent});
  Error error;
  EXPECT_EQ(dialer.progress(0, &error), Status::kAgain);
  EXPECT_EQ(dialer.due_ns(), 100u);
  EXPECT_THAT(dialer.last_failure(), HasSubstr("192.0.2.1"));
}

TEST(Dialer, KnowsTheFailuresOfANetworkThatStartsOrFlaps) {
  for (const int code : {EHOSTUNREACH, ENETUNREACH, ENETDOWN, ETIMEDOUT, EHOSTDOWN, ECONNABORTED,
                         EADDRNOTAVAIL, ENETRESET, ENONET, EACCES, ECONNRESET, EPIPE}) {
    EXPECT_TRUE(Dialer::may_pass(Error{Status::kRemote, code, ""})) << code;
  }
  for (const int code : {0, ECONNREFUSED, EPERM, EMFILE}) {
    const Error error{Status::kRemote, code, ""};
    EXPECT_FALSE(Dialer::may_pass(error)) << code;
    EXPECT_TRUE(Dialer::may_pass(error, Dialer::Retry::kAll)) << code;
  }
}

// The first address of several has a short time, which grows with each round.
TEST(Dialer, LeavesASilentAddressSoon) {
  const Fd full = *listen_on(*SocketAddress::parse("127.0.0.1"), 0);
  const SocketAddress silent = *local_address(full);
  const Fd filling[] = {*start_connect(silent), *start_connect(silent)};
  Dialer dialer(Addresses{silent, silent}, {.pause_ns = 0});
  Error error;
  uint64_t now_ns = 0;
  for (const uint64_t limit : {1, 1, 4, 4, 16, 16}) {
    ASSERT_EQ(dialer.progress(now_ns, &error), Status::kAgain);
    ASSERT_TRUE(dialer.fd());
    const uint64_t due_ns = dialer.due_ns();
    EXPECT_EQ(due_ns - now_ns, std::min(limit * Dialer::kFirstTryNs, Dialer::kTryNs));
    ASSERT_EQ(dialer.progress(now_ns = due_ns, &error), Status::kAgain);
    EXPECT_FALSE(dialer.fd());
  }
}

TEST(Dialer, GivesUpAnAddressThatDoesNotAnswer) {
  const Fd full = *listen_on(*SocketAddress::parse("127.0.0.1"), 0);
  const SocketAddress silent = *local_address(full);
  const Fd filling[] = {*start_connect(silent), *start_connect(silent)};
  Dialer dialer(silent, {.pause_ns = 0, .try_ns = 100});
  Error error;
  EXPECT_EQ(dialer.progress(0, &error), Status::kAgain);
  EXPECT_EQ(dialer.progress(99, &error), Status::kAgain);
  EXPECT_EQ(dialer.last_failure(), "");
  EXPECT_EQ(dialer.progress(100, &error), Status::kAgain);
  EXPECT_NE(dialer.last_failure().find("no answer from 127.0.0.1"), std::string::npos);
}

}  // namespace
}  // namespace slime
