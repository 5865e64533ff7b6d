// Random lives of two engines that tell each other messages, as many as fit into the time of a
// test: rails die and return, links are replaced, receivers refuse messages or take them
// later, requests are given up. Each message is taken once, in order, or its request says why not.
// A violation prints its seed:
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
#include "peer/rings.h"
#include "test/support/seeds.h"
#include "test/support/sim/lifeline.h"
#include "test/support/sim_hosts.h"

namespace slime::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSchedules = 2'000;
#else
constexpr uint64_t kSchedules = 20'000;
#endif
constexpr size_t kRails = 3;
constexpr uint64_t kDeadlineNs = 60'000'000'000;

Settings quick_settings() {
  Settings settings;
  settings.rail_timeout = 0.002;
  settings.rail_retry = 20e-6;
  settings.connect_timeout = 0.001;
  settings.watermark = 4;
  return settings;
}

// An end of a link, which has the rings and nothing else.
class RingsEnd final : private LinkEnd {
 public:
  RingsEnd(SimHost& host, LinkParts parts)
      : link(*host.devices, host.device(), std::move(parts)), rings(link) {
    link.serve(*this);
  }

  Link link;
  Rings rings;

 private:
  Status on_arrived(size_t, uint32_t immediate, uint64_t) override {
    return rings.on_arrived(immediate);
  }
  OutboxPiece fence_record(const RailLife&) override { return {}; }
  Status on_both_fenced(const RailLife& life) override {
    link.rails().hand_back_works(life.rail);
    return Status::kOk;
  }
};

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

struct Side {
  Side(sim::Network& network, const char* name)
      : host(network, kRails, RailCaps(), quick_settings(), name) {}
  SimHost host;
  std::unique_ptr<RingsEnd> end;
  std::array<Stream, 2> streams;  // to the other side: events, notices
};

struct Totals {
  uint64_t schedules = 0, messages = 0, taken = 0, refused = 0, given_up = 0, deaths = 0, links = 0;
};

class World {
 public:
  std::string run(uint64_t seed) {
    violation_.clear();
    random_ = sim::Random(seed);
    network_.reset(seed);
    draw();
    make_link();
    while (violation_.empty() && !done()) turn();
    if (violation_.empty()) check_ends();
    for (Side* side : sides_) side->end.reset();
    if (violation_.empty() && network_.violations().total() != 0) violation_ = "a rail was misused";
    ++totals.schedules;
    return violation_;
  }
  Totals totals;

 private:
  uint64_t below(uint64_t bound) { return random_.up_to(bound - 1); }
  bool chance(uint64_t percent) { return below(100) < percent; }
  Side& other(Side& side) { return &side == &active_ ? passive_ : active_; }
  static Ring& ring(Side& side, size_t stream) {
    return stream == 0 ? side.end->rings.events : side.end->rings.notices;
  }

  void draw() {
    RailCaps caps;
    caps.ordered = chance(50);
    caps.arrives_unpolled = chance(50);
    caps.confirms_in_hardware = caps.arrives_unpolled && chance(50);
    caps.send_queue_depth = chance(20) ? 2 : 16;
    caps.max_batch = 8;
    sim::RailModel model;
    model.latency_ns = 500 + below(5000);
    model.jitter_ns = caps.ordered ? 0 : below(20'000);
    model.notice_ns = below(30'000);
    model.one_sided_ppm = chance(50) ? 500'000 : 0;
    for (Side* side : sides_) {
      for (size_t i = 0; i < kRails; ++i) {
        caps.name = std::string(side == &active_ ? "a." : "b.") + std::to_string(i);
        side->host.rails[i]->configure(caps, model);
      }
      side->streams = {};
    }
    rails_ = 1 + static_cast<uint32_t>(below(kRails));
    turns_left_ = static_cast<uint32_t>(below(10));
    wanted_ = 1 + below(chance(5) ? 3000 : 150);
    refuses_ = chance(50) ? below(30) : 0;
    later_ = below(60);
    gives_up_ = chance(50) ? below(5) : 0;
  }

  // All that was in the rings of the link before is forgotten, as in a peer that got another link.
  void make_link() {
    for (Side* side : sides_) {
      side->end.reset();
      for (Stream& stream : side->streams) stream.sender.on_new_link();
      while (side->host.device().number_link() % 6 != 5) continue;
    }
    SimEnds ends = connect(network_, active_.host, passive_.host, rails_,
                           {Rings::kMemory, Rings::kMemory, {}, true, 0});
    ends.active.lifeline_seconds = ends.passive.lifeline_seconds = 20;
    ends.active.lifeline_dialer = std::make_unique<sim::LifelineCaller>(
        network_, random_, sim::LifelineModel(), [this](std::unique_ptr<LifelineStream> stream) {
          passive_.end->link.take_lifeline(std::move(stream));
        });
    active_.end = std::make_unique<RingsEnd>(active_.host, std::move(ends.active));
    passive_.end = std::make_unique<RingsEnd>(passive_.host, std::move(ends.passive));
    ++totals.links;
  }

  void turn() {
    for (Side* side : sides_) {
      if (wanted_ > 0 && chance(40)) send(*side);
      if (chance(80)) move(*side);
    }
    if (chance(50)) network_.advance(below(2000));
    if (turns_left_ > 0 && chance(3)) disturb();
    if (turns_left_ == 0) revive_all();
    const bool beside =
        active_.end->link.rails().up_count() == 0 || passive_.end->link.rails().up_count() == 0;
    if (chance(20) && !network_.step()) network_.advance(beside ? 10'000 : 500'000);
    if (network_.now_ns() > kDeadlineNs) violation_ = "a message hangs";
  }

  void send(Side& side) {
    Stream& stream = side.streams[below(2)];
    const uint64_t number = stream.sent.size();
    const auto bytes = bytes_of(number);
    Message message{MessageKind::kNotice, {bytes.begin(), bytes.end()}, nullptr};
    message.payload.resize(sizeof number + below(MessageSender::kMostBytes - sizeof number + 1));
    const auto request = std::make_shared<PeerRequest>();
    request->messages.push_back(std::move(message));
    for (Message& one : request->begin_telling()) stream.sender.add(std::move(one), request);
    stream.sent.push_back({number, request});
    --wanted_;
    ++totals.messages;
  }

  void move(Side& side) {
    if (side.end->link.progress() != Status::kOk) {
      violation_ = "the link failed: " + side.end->link.context().failure().what;
      return;
    }
    for (size_t i = 0; i < 2; ++i) {
      Stream& from = other(side).streams[i];
      const Status status =
          from.receiver.receive(side.end->link, ring(side, i),
                                [&](uint64_t, MessageKind, std::span<const std::byte> payload) {
                                  return take(from, payload);
                                });
      if (status != Status::kOk) violation_ = side.end->link.context().failure().what;
      Stream& to = side.streams[i];
      if (below(1000) < gives_up_) give_up(to);
      to.sender.move(ring(side, i), network_.now_ns());
    }
    side.end->rings.move();
    side.end->link.post_more();
  }

  Verdict take(Stream& from, std::span<const std::byte> payload) {
    uint64_t number = 0;
    std::memcpy(&number, payload.data(), sizeof number);
    if (number >= from.sent.size()) violation_ = "a message that nobody sent";
    if (!violation_.empty()) return Verdict::kWrong;
    Sent& sent = from.sent[number];
    if (chance(later_)) return Verdict::kLater;
    if (sent.taken > 0) violation_ = "a message comes twice";
    if (from.last_taken && *from.last_taken >= number) violation_ = "out of order";
    if (sent.request->done() && !sent.given_up) violation_ = "it ended before it was taken";
    if (chance(refuses_)) return ++sent.refused, Verdict::kRefused;
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
    (void)stream.sender.give_up(network_.now_ns(), &why);
  }

  void disturb() {
    --turns_left_;
    if (chance(30)) return revive_all(), make_link();
    const size_t i = below(rails_);
    for (Side* side : sides_) {
      if (side->host.rails[i]->dead()) return side->host.rails[i]->revive();
    }
    ++totals.deaths;
    sides_[below(2)]->host.rails[i]->kill(sim::Death::kNoticed);
  }
  void revive_all() {
    for (Side* side : sides_) {
      for (sim::Rail* rail : side->host.rails) {
        if (rail->dead()) rail->revive();
      }
    }
  }

  bool done() const {
    if (wanted_ > 0) return false;
    for (const Side* side : sides_) {
      for (const Stream& stream : side->streams) {
        if (!stream.sender.idle()) return false;
      }
    }
    return true;
  }

  void check_ends() {
    for (Side* side : sides_) {
      for (const Stream& stream : side->streams) {
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

  sim::Network network_{1};
  sim::Random random_{1};
  Side active_{network_, "a"}, passive_{network_, "b"};
  const std::array<Side*, 2> sides_ = {&active_, &passive_};
  uint32_t rails_ = 0, turns_left_ = 0;
  uint64_t wanted_ = 0, refuses_ = 0, later_ = 0, gives_up_ = 0;
  std::string violation_;
};

TEST(MessageSchedules, EachMessageIsTakenOnceOrItsRequestSaysWhyNot) {
  World world;
  run_seeds(kSchedules, [&](uint64_t seed) { return world.run(seed); });
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  const Totals& all = world.totals;
  std::printf(
      "%llu schedules, %llu messages, %llu taken, %llu refused, %llu given up, %llu rails "
      "made to die, %llu links\n",
      number(all.schedules), number(all.messages), number(all.taken), number(all.refused),
      number(all.given_up), number(all.deaths), number(all.links));
  if (all.schedules < 1000) return;
  EXPECT_GT(all.taken, all.schedules);
  EXPECT_GT(all.refused, all.schedules / 10);
  EXPECT_GT(all.given_up, all.schedules / 10);
  EXPECT_GT(all.deaths, all.schedules / 2);
  EXPECT_GT(all.links, all.schedules);
}

}  // namespace
}  // namespace slime::test
