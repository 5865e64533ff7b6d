// Random lives of two engines that tell each other messages, as many as fit into the time of a
// test: rails die and return, links are replaced, engines remove each other, receivers refuse
// messages or take them later, requests are given up. Each message is taken once, in order, or its
// request says why not. A violation prints its seed:
//   SLIME_SEED=n build/test/peer --gtest_filter=MessageSchedules.*
// and SLIME_SCHEDULES=m runs m of them, from that seed on.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peer/messages/receiver.h"
#include "peer/messages/sender.h"
#include "test/support/ring_life.h"
#include "test/support/seeds.h"

namespace slime::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSchedules = 2'000;
#else
constexpr uint64_t kSchedules = 20'000;
#endif
constexpr uint64_t kDeadlineNs = 60'000'000'000;

// What the sender knows of a message, and what became of it at the receiver.
struct Sent {
  uint64_t number = 0;
  std::shared_ptr<PeerRequest> request;
  bool given_up = false;
  uint32_t taken = 0, refused = 0;
};

// One direction of one ring.
struct Stream {
  MessageSender sender;
  MessageReceiver receiver;
  std::vector<Sent> sent;
  std::optional<uint64_t> last_taken;
};

struct Totals {
  uint64_t schedules = 0, messages = 0, taken = 0, refused = 0, given_up = 0, removals = 0;
};

class World {
 public:
  std::string run(uint64_t seed) {
    violation_.clear();
    life.reset(seed);
    draw();
    make_link();
    while (violation_.empty() && !done()) turn();
    if (violation_.empty()) check_ends();
    life.drop_link();
    if (violation_.empty() && life.network.violations().total() != 0) {
      violation_ = "a rail was misused";
    }
    ++totals.schedules;
    return violation_;
  }
  Totals totals;
  RingLife life;

 private:
  Ring& ring(size_t side, size_t stream) {
    Rings& rings = life.end(side).rings;
    return stream == 0 ? rings.events : rings.notices;
  }

  void draw() {
    streams_ = {};
    wanted_ = 1 + life.below(life.chance(5) ? 3000 : 150);
    refuses_ = life.chance(50) ? life.below(30) : 0;
    later_ = life.below(60);
    gives_up_ = life.chance(50) ? life.below(5) : 0;
  }

  void make_link() {
    for (auto& side : streams_) {
      for (Stream& stream : side) stream.sender.on_new_link();
    }
    life.make_link();
  }

  void turn() {
    for (size_t side = 0; side < 2; ++side) {
      if (wanted_ > 0 && life.chance(40)) send(side);
      if (life.chance(80)) move(side);
    }
    if (life.pass()) {
      if (life.chance(20)) remove(life.below(2));
      make_link();
    }
    if (life.network.now_ns() > kDeadlineNs) violation_ = "a message hangs";
  }

  // This side has removed the other one, which learns that with the next link.
  void remove(size_t side) {
    const uint64_t now_ns = life.network.now_ns();
    for (size_t i = 0; i < 2; ++i) {
      Stream& to = streams_[side][i];
      give_up(to);
      to.sender = {};
      to.receiver.forget_numbers();
      Stream& from = streams_[1 - side][i];
      from.receiver.forget_numbers();
      std::vector<Sent*> open;
      for (Sent& sent : from.sent) {
        if (!sent.request->done()) open.push_back(&sent);
      }
      from.sender.forget_numbers(now_ns);
      for (Sent* sent : open) sent->given_up |= sent->request->done();
    }
    ++totals.removals;
  }

  void send(size_t side) {
    Stream& stream = streams_[side][life.below(2)];
    const uint64_t number = stream.sent.size();
    const auto bytes = bytes_of(number);
    Message message{MessageKind::kNotice, {bytes.begin(), bytes.end()}, nullptr};
    const size_t most = MessageSender::kMostBytes - sizeof number;
    message.payload.resize(sizeof number + life.below(life.chance(60) ? 100 : most + 1));
    const auto request = std::make_shared<PeerRequest>();
    request->messages.push_back(std::move(message));
    request->set_moved();
    for (Message& one : request->begin_telling()) stream.sender.add(std::move(one), request);
    stream.sent.push_back({number, request});
    --wanted_;
    ++totals.messages;
  }

  void move(size_t side) {
    Link& link = life.end(side).link;
    if (link.progress() != Status::kOk) {
      violation_ = "the link failed: " + link.context().failure().what;
      return;
    }
    for (size_t i = 0; i < 2; ++i) {
      Stream& from = streams_[1 - side][i];
      const Status status = from.receiver.receive(
          link, ring(side, i), [&](uint64_t, MessageKind, std::span<const std::byte> payload) {
            return take(from, payload);
          });
      if (status != Status::kOk) violation_ = link.context().failure().what;
      Stream& to = streams_[side][i];
      if (life.below(1000) < gives_up_) give_up(to);
      to.sender.move(ring(side, i), life.network.now_ns());
    }
    life.end(side).rings.move();
    link.post_more();
  }

  Verdict take(Stream& from, std::span<const std::byte> payload) {
    uint64_t number = 0;
    std::memcpy(&number, payload.data(), sizeof number);
    if (number >= from.sent.size()) violation_ = "a message that nobody sent";
    if (!violation_.empty()) return Verdict::kWrong;
    Sent& sent = from.sent[number];
    if (life.chance(later_)) return Verdict::kLater;
    if (sent.taken > 0) violation_ = "a message comes twice";
    if (from.last_taken && *from.last_taken >= number) violation_ = "out of order";
    if (sent.request->done() && !sent.given_up) violation_ = "it ended before it was taken";
    if (life.chance(refuses_)) return ++sent.refused, Verdict::kRefused;
    from.last_taken = number;
    ++sent.taken;
    return Verdict::kTaken;
  }

  void give_up(Stream& stream) {
    const Error why = make_error(Status::kTimeout, 0, "given up");
    for (Sent& sent : stream.sent) {
      if (sent.request->done()) continue;
      sent.given_up = true;
      ++totals.given_up;
    }
    (void)stream.sender.give_up(life.network.now_ns(), &why);
  }

  bool done() const {
    if (wanted_ > 0) return false;
    for (const auto& side : streams_) {
      for (const Stream& stream : side) {
        if (!stream.sender.idle()) return false;
      }
    }
    return true;
  }

  void check_ends() {
    for (const auto& side : streams_) {
      for (const Stream& stream : side) {
        for (const Sent& sent : stream.sent) check_end(sent);
      }
    }
  }
  void check_end(const Sent& sent) {
    if (!sent.request->done()) violation_ = "a request did not end";
    const bool ok = sent.request->outcome().error.status == Status::kOk;
    if (ok && sent.taken != 1) violation_ = "a message was lost";
    if (!ok && !sent.given_up && sent.taken != 0) violation_ = "a message is said to be refused";
    if (!ok && !sent.given_up && sent.refused == 0) violation_ = "nobody refused it";
    totals.taken += sent.taken;
    totals.refused += ok || sent.given_up ? 0 : 1;
  }

  std::array<std::array<Stream, 2>, 2> streams_;  // from each side: events, notices
  uint64_t wanted_ = 0, refuses_ = 0, later_ = 0, gives_up_ = 0;
  std::string violation_;
};

TEST(MessageSchedules, EachMessageIsTakenOnceOrItsRequestSaysWhyNot) {
  World world;
  run_seeds(kSchedules, [&](uint64_t seed) { return world.run(seed); });
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  const Totals& all = world.totals;
  std::printf(
      "%llu schedules, %llu messages, %llu taken, %llu refused, %llu given up, %llu removals, "
      "%llu rails made to die, %llu links\n",
      number(all.schedules), number(all.messages), number(all.taken), number(all.refused),
      number(all.given_up), number(all.removals), number(world.life.deaths),
      number(world.life.links));
  if (all.schedules < 1000) return;
  EXPECT_GT(all.taken, all.schedules);
  EXPECT_GT(all.refused, all.schedules / 10);
  EXPECT_GT(all.given_up, all.schedules / 10);
  EXPECT_GT(all.removals, all.schedules / 10);
  EXPECT_GT(world.life.deaths, all.schedules / 2);
  EXPECT_GT(world.life.links, all.schedules);
}

}  // namespace
}  // namespace slime::test
