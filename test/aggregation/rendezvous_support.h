// The ranks of a rendezvous, and strangers that speak its protocol.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "aggregation/introduction.h"
#include "base/net/socket.h"
#include "rendezvous/messages.h"
#include "test/aggregation/support.h"
#include "test/support/unused_address.h"

namespace slime::aggregation {

inline Introduction introduction_of(uint32_t rank, uint32_t ranks) {
  Introduction introduction;
  introduction.rank = rank;
  introduction.ranks = ranks;
  introduction.ready = 1;
  introduction.handle.fill(static_cast<std::byte>(rank + 1));
  return introduction;
}

inline SecretKey key_of(const std::string& text) {
  return SecretKey::from_bytes(std::as_bytes(std::span(text))).value();
}

using rendezvous::Answer;
using rendezvous::bytes_of;
using rendezvous::Hello;
using rendezvous::Terms;

// A hello without a key.
inline Hello hello_of(const Introduction& introduction) {
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

  // The limits are a minute, so that no step is late on a busy machine. A test of a time-out passes
  // a clock that it moves itself.
  static Terms meeting(const Clock& clock = SteadyClock::instance()) {
    return {
        .where = {}, .key = {}, .limit_ns = kMinuteNs, .hello_limit_ns = kMinuteNs, .clock = clock};
  }
  Result<std::vector<Introduction>> meet_there(const Terms& terms, const Introduction& own) const {
    return meet(terms, HostPort{address_.host(), address_.port()}, own);
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

}  // namespace slime::aggregation
