// Random lives of two engines that send each other messages with tags, as many as fit into the time
// of a test: rails die and return, links are replaced, receives are posted early and late, have no
// room, and are given up, as are sends. Reads take their time, and find that a letter has gone.
// Each message is received once, in order, or its sender learns that it may not have been. A
// violation prints its seed:
//   SLIME_SEED=n build/test/peer --gtest_filter=TaggedSchedules.*
// and SLIME_SCHEDULES=m runs m of them, from that seed on.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "test/support/messages_end.h"
#include "test/support/ring_life.h"
#include "test/support/seeds.h"

namespace slime::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSchedules = 500;
#else
constexpr uint64_t kSchedules = 5'000;
#endif
constexpr uint64_t kDeadlineNs = 60'000'000'000;
constexpr uint64_t kPeer = 1;  // the handle by which both know each other
constexpr size_t kLongBytes = Tagged::kMostBytes + 1;

struct Sent {
  uint64_t tag = 0;
  bool is_long = false;
  std::shared_ptr<PeerRequest> request;
  uint32_t received = 0;
};
struct Received {
  uint64_t tag = 0, mask = 0;
  std::string room;
  std::shared_ptr<PeerRequest> request;
  bool given_up = false;
};

struct Side : MessagesEnd {
  explicit Side(MemoryCache& cache) : MessagesEnd(cache) {}

  std::vector<Sent> sent;
  std::vector<std::unique_ptr<Received>> receives;
  Requests reading;
};

struct Totals {
  uint64_t schedules = 0, messages = 0, received = 0, with_keys = 0, failed = 0;
};

class World {
 public:
  std::string run(uint64_t seed) {
    violation_.clear();
    letters_.clear();
    life.reset(seed);
    for (size_t side = 0; side < 2; ++side) {
      sides_[side] = std::make_unique<Side>(life.host(side).device().memory());
    }
    wanted_ = 1 + life.below(150);
    gives_up_ = life.chance(50) ? life.below(5) : 0;
    make_link();
    while (violation_.empty() && !done()) turn();
    for (size_t side = 0; violation_.empty() && side < 2; ++side) check(side);
    life.drop_link();
    for (auto& side : sides_) side.reset();
    ++totals.schedules;
    return violation_;
  }
  Totals totals;
  RingLife life;

 private:
  void make_link() {
    ++links_;
    for (auto& side : sides_) side->messages.on_new_link(links_, 1, life.network.now_ns());
    life.make_link();
  }

  void turn() {
    for (size_t side = 0; side < 2; ++side) {
      if (wanted_ > 0 && life.chance(40)) send(*sides_[side]);
      if (life.chance(wanted_ > 0 ? 30 : 60)) receive(side, wanted_ == 0);
      if (life.below(1000) < gives_up_) give_up_a_receive(*sides_[side]);
      if (life.chance(80)) move(side);
    }
    if (life.pass()) lose_link();
    if (life.network.now_ns() > kDeadlineNs) violation_ = "a message hangs";
  }

  // An end may take the other one to have gone; the other one need not do the same.
  void lose_link() {
    for (size_t side = 0; side < 2; ++side) {
      Side& one = *sides_[side];
      if (life.chance(50)) one.messages.end_taken(life.end(side).rings, 0);
      if (life.chance(80)) continue;
      const Error why = make_error(Status::kTimeout, 0, "gone");
      for (const auto& request : std::exchange(one.reading, {})) {
        request->give_up(why);
        one.messages.after(request, 0);
      }
      one.messages.end(kPeer, why, 0);
    }
    make_link();
  }

  // The bytes of a message begin with its number.
  void send(Side& side) {
    const uint64_t number = side.sent.size(), tag = life.below(4);
    auto text = std::make_shared<std::string>(
        8 + life.below(life.chance(50) ? 100 : Tagged::kMostBytes - 7), 's');
    Message message = Message::of(MessageKind::kTagged, tag);
    const bool is_long = life.chance(50);
    if (is_long) text->resize(kLongBytes);
    std::memcpy(text->data(), &number, sizeof number);
    if (is_long) {
      auto region = *side.to.make_region(std::as_writable_bytes(std::span(*text)), 0, text);
      auto letter = std::make_shared<const Letter>(side.regions, std::move(region));
      TaggedLetter words{tag, letter->address()};
      words.address.nonce = ++nonces_;
      letters_[nonces_] = {text, &letter->memory()};
      message = Letter::message(MessageKind::kTaggedLetter, words, std::move(letter));
      message.nonce = nonces_;
    } else {
      const auto bytes = std::as_bytes(std::span(*text));
      message.payload.insert(message.payload.end(), bytes.begin(), bytes.end());
    }
    const auto request = std::make_shared<PeerRequest>();
    if (life.chance(gives_up_ * 5)) {
      request->set_due(life.network.now_ns() + life.below(20'000'000));
    }
    request->messages.push_back(std::move(message));
    side.messages.after(request, life.network.now_ns());
    side.sent.push_back({tag, is_long, request});
    --wanted_;
    ++totals.messages;
  }

  // `all`: takes any message, of any length.
  void receive(size_t of, bool all) {
    Side& side = *sides_[of];
    auto one = std::make_unique<Received>();
    one->tag = life.below(4);
    one->mask = all ? 0 : life.below(4);
    one->room.assign(!all && life.chance(5) ? 4 : kLongBytes, '?');
    one->request = std::make_shared<PeerRequest>();
    const TaggedReceive receive{life.chance(50) ? kPeer : TaggedReceive::kAnyPeer, one->tag,
                                one->mask, std::as_writable_bytes(std::span(one->room)),
                                one->request};
    std::vector<uint64_t> peers;
    const auto message = side.tagged.post(receive, &peers);
    if (message && deliver(*message, receive, side.to.make_region)) {
      side.reading.push_back(one->request);
    }
    side.receives.push_back(std::move(one));
  }

  void give_up_a_receive(Side& side) {
    if (side.receives.empty()) return;
    Received& one = *side.receives[life.below(side.receives.size())];
    if (one.request->done()) return;
    one.given_up = true;
    const Error why = make_error(Status::kTimeout, 0, "given up");
    side.tagged.end(one.request.get(), why);
    if (!one.request->done()) one.request->give_up(why);  // it reads
  }

  void move(size_t of) {
    Side& side = *sides_[of];
    RingsEnd& end = life.end(of);
    Status status = end.link.progress();
    const auto submit = [&](const auto& request) { side.reading.push_back(request); };
    if (status == Status::kOk) status = side.messages.receive(end.rings, kPeer, submit);
    if (status != Status::kOk) {
      violation_ = "the link failed: " + end.link.context().failure().what;
      return;
    }
    const uint64_t now_ns = life.network.now_ns();
    std::erase_if(side.reading, [&](const auto& request) {
      if (life.chance(70)) return false;
      if (!request->given_up()) read(*request, of);
      side.messages.after(request, now_ns);
      return true;
    });
    side.messages.expire(now_ns);
    side.messages.move(end.rings, now_ns);
    end.rings.move();
    end.link.post_more();
  }

  // Reads the letter of a receive. If its sender has given it up the read is refused.
  void read(PeerRequest& request, size_t of) {
    const auto& [text, memory] = letters_[*request.fetches];
    const auto letter = text.lock();
    if (letter != nullptr) check_keys(*request.remotes[0], *memory, of);
    if (letter == nullptr) {
      request.give_up(make_error(Status::kRemote, 0, "no such region"));
    } else {
      std::memcpy(const_cast<std::byte*>(request.pieces[0].local), letter->data(), letter->size());
      request.received(letter->size());
    }
  }

  // Those of another link are not used.
  void check_keys(Remote& remote, const MemoryRegion& memory, size_t reader) {
    remote.use_on(links_);
    if (remote.state != Remote::Keys::kKnown) return;
    const LinkRails& rails = life.end(1 - reader).link.rails();
    for (size_t i = 0; i < rails.count(); ++i) {
      if (remote.keys[i] != rails[i].remote_key(&memory)) violation_ = "a wrong key";
    }
    ++totals.with_keys;
  }

  bool done() const {
    if (wanted_ > 0) return false;
    for (const auto& side : sides_) {
      if (!side->messages.all_told() || !side->reading.empty()) return false;
    }
    return true;
  }

  // What was received here, and sent there.
  void check(size_t of) {
    Side& side = *sides_[of];
    std::vector<Sent>& sent = sides_[1 - of]->sent;
    // Nobody can read a letter any more: all sends have ended. What is left are short ones.
    do receive(of, true);
    while (side.receives.back()->request->done());
    if (!side.reading.empty()) violation_ = "a letter that was given up is still offered";
    size_t too_long = 0;
    for (const auto& one : side.receives) {
      check(*one, sent);
      too_long += one->request->outcome().error.status == Status::kInvalid ? 1 : 0;
    }
    check_order(side, sent);
    for (const Sent& one : sent) check(one);
    const auto lost = [](const Sent& one) {
      return one.received == 0 && one.request->outcome().error.status == Status::kOk;
    };
    if (std::ranges::count_if(sent, lost) > static_cast<ptrdiff_t>(too_long)) {
      violation_ = "a short message was lost";
    }
  }

  void check(const Received& one, std::vector<Sent>& sent) {
    if (!one.request->done()) return;  // no message was left for it
    const Outcome& outcome = one.request->outcome();
    if (outcome.error.status != Status::kOk) return void(++totals.failed);
    const uint64_t number = number_in(one);
    if (number >= sent.size()) return void(violation_ = "a message that nobody sent");
    if (++sent[number].received > 1) violation_ = "a message is received twice";
    if (outcome.tag != sent[number].tag || outcome.peer != kPeer) violation_ = "a wrong result";
    if (((outcome.tag ^ one.tag) & one.mask) != 0) violation_ = "it does not fit";
    if (sent[number].is_long != (outcome.bytes == kLongBytes)) violation_ = "wrong bytes";
    ++totals.received;
  }
  static uint64_t number_in(const Received& one) {
    uint64_t number = 0;
    std::memcpy(&number, one.room.data(), sizeof number);
    return number;
  }

  // Of two receives that fit both messages, the first has got the first.
  void check_order(const Side& side, const std::vector<Sent>& sent) {
    const auto fits = [](const Received& one, const Sent& message) {
      return ((message.tag ^ one.tag) & one.mask) == 0;
    };
    std::vector<const Received*> ok;
    for (const auto& one : side.receives) {
      const bool done = one->request->done();
      if (done && one->request->outcome().error.status == Status::kOk) ok.push_back(one.get());
    }
    for (size_t i = 0; violation_.empty() && i < ok.size(); ++i) {
      for (size_t j = i + 1; j < ok.size(); ++j) {
        const uint64_t a = number_in(*ok[i]), b = number_in(*ok[j]);
        if (b < a && fits(*ok[i], sent[b]) && fits(*ok[j], sent[a])) violation_ = "out of order";
      }
    }
  }

  void check(const Sent& one) {
    if (!one.request->done()) violation_ = "a send did not end";
    const bool ok = one.request->outcome().error.status == Status::kOk;
    if (ok && one.is_long && one.received != 1) violation_ = "a long message was lost";
    const bool timed_out = one.request->outcome().error.status == Status::kTimeout;
    if (!ok && !timed_out && one.received != 0) violation_ = "it is said not to be received";
  }

  std::array<std::unique_ptr<Side>, 2> sides_;
  struct Offered {
    std::weak_ptr<std::string> text;  // it lives as long as `memory` is registered
    const MemoryRegion* memory = nullptr;
  };
  std::unordered_map<uint64_t, Offered> letters_;
  uint64_t nonces_ = 0, links_ = 0, wanted_ = 0, gives_up_ = 0;
  std::string violation_;
};

TEST(TaggedSchedules, EachMessageIsReceivedOnceInOrder) {
  World world;
  run_seeds(kSchedules, [&](uint64_t seed) { return world.run(seed); });
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  const Totals& all = world.totals;
  std::printf(
      "%llu schedules, %llu messages, %llu received, %llu letters with keys, %llu receives failed, "
      "%llu rails made to die, %llu links\n",
      number(all.schedules), number(all.messages), number(all.received), number(all.with_keys),
      number(all.failed), number(world.life.deaths), number(world.life.links));
  if (all.schedules < 400) return;
  EXPECT_GT(all.received, all.schedules * 10);
  EXPECT_GT(all.with_keys, all.schedules * 5);
  EXPECT_GT(all.failed, all.schedules / 10);
  EXPECT_GT(world.life.links, all.schedules);
}

}  // namespace
}  // namespace slime::test
