// Random lives of two peers that write and read each other's memory, tell each other so, and
// signal: rails die and return, links are replaced, peers remove each other, memory is
// deregistered, requests are cancelled and time out. Each program uses its memory again as soon as
// it may, so what is written twice, late or early is seen. A violation prints its seed:
//   SLIME_SEED=n build/test/peer --gtest_filter=PeerSchedules.*
// and SLIME_SCHEDULES=m runs m of them, from that seed on.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "test/support/peer_life.h"
#include "test/support/seeds.h"

namespace slime::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSchedules = 1'000;
#else
constexpr uint64_t kSchedules = 10'000;
#endif
constexpr uint64_t kDeadlineNs = 60'000'000'000;  // of virtual time
constexpr size_t kSlots = 16, kSlotBytes = 4096, kWindows = 2;

// What programs fill memory with when they use it again.
constexpr std::byte kFresh{0x11}, kAfterEnd{0xCC}, kAfterTold{0xDD}, kAfterError{0xEE};

struct Place {
  alignas(8) std::array<std::byte, kSlotBytes> bytes;
  std::byte fill = kFresh;
  bool known = true;  // it has that everywhere

  void use_again(std::byte with) {
    bytes.fill(with);
    fill = with;
    known = true;
  }
  bool untouched() const {
    return !known || (bytes[0] == fill && std::memcmp(&bytes[0], &bytes[1], kSlotBytes - 1) == 0);
  }
};
using Places = std::array<Place, kSlots>;

struct Part {
  uint64_t offset = 0, bytes = 0;
};

enum class Tells : uint8_t { kNothing, kImmediate, kNotice, kSignal };

struct Op {
  uint32_t number = 0;
  size_t from = 0, slot = 0, window = 0;
  Opcode opcode = Opcode::kWrite;
  Tells tells = Tells::kNothing;
  std::vector<Part> parts;
  std::shared_ptr<PeerRequest> request;
  uint32_t told = 0;
};

struct Side {
  Places own;
  std::array<Places, kWindows> windows;
  std::shared_ptr<Region> own_region;
  std::array<std::shared_ptr<Region>, kWindows> regions;
  std::array<std::shared_ptr<Remote>, kWindows> remotes;  // of the other side's windows
  std::array<uint64_t, kWindows> handles = {};
  std::array<bool, kSlots> busy = {};
};

struct Totals {
  uint64_t schedules = 0, strict = 0, requests = 0, done = 0, given_up = 0, refused = 0, told = 0,
           followed = 0, removals = 0, to_devices = 0;
};

std::byte pattern(uint32_t number, uint64_t i) {
  return static_cast<std::byte>(number * 37 + i * 11 + (i >> 8));
}

class World {
 public:
  std::string run(uint64_t seed) {
    violation_.clear();
    ops_.clear();
    open_.clear();
    excused_ = false;
    life.reset(seed, [this](size_t side) {
      return [this, side](uint64_t, uint32_t immediate) { return told(side, immediate), true; };
    });
    draw();
    while (violation_.empty() && !done()) turn();
    if (violation_.empty()) check_memory();
    end();
    const sim::Violations& misuse = life.network.violations();
    if (violation_.empty() && misuse.source_changed + misuse.bad_calls != 0)
      violation_ = "memory changed while a rail read it";
    ++totals.schedules;
    if (!excused_) ++totals.strict;
    return violation_;
  }
  Totals totals;
  PeerLife life;

 private:
  void draw() {
    wanted_ = 1 + life.below(life.chance(10) ? 600 : 100);
    gives_up_ = life.chance(40) ? 1 + life.below(20) : 0;
    deregisters_ = life.chance(30);
    has_devices_ = life.chance(50);
    for (size_t side = 0; side < 2; ++side) {
      sides_[side] = std::make_unique<Side>();
      Side& own = *sides_[side];
      for (Place& place : own.own) place.use_again(kFresh);
      for (Places& window : own.windows) {
        for (Place& place : window) place.use_again(kFresh);
      }
      own.own_region = life.end(side).make_region(std::as_writable_bytes(std::span(own.own)), 0, 0);
    }
    for (size_t side = 0; side < 2; ++side) {
      for (size_t window = 0; window < kWindows; ++window) offer(side, window);
    }
  }
  void end() {
    for (auto& op : ops_) op->request.reset();
    life.end_all();
    for (auto& side : sides_) side.reset();
  }

  bool in_device(size_t window) const { return has_devices_ && window == 1; }

  // Registers a window, and tells the other side.
  void offer(size_t side, size_t window) {
    Side& own = *sides_[side];
    constexpr uint8_t kRights = kRemoteRead | kRemoteWrite;
    const auto memory = std::as_writable_bytes(std::span(own.windows[window]));
    const auto kind = in_device(window) ? MemoryKind::kCuda : MemoryKind::kHost;
    own.regions[window] = life.end(side).make_region(memory, kRights, ++nonces_, kind);
    own.handles[window] = life.end(side).messages.regions.add(own.regions[window]);
    sides_[1 - side]->remotes[window] =
        std::make_shared<Remote>(address_of({}, own.handles[window], *own.regions[window]));
  }

  void turn() {
    for (size_t side = 0; side < 2; ++side) {
      if (wanted_ > 0 && life.chance(40)) begin(side);
      if (life.below(1000) < gives_up_) cancel_one();
      if (life.chance(80)) life.end(side).move();
      fetch(side);
    }
    settle_those_done();
    if (deregisters_ && life.below(1000) < 3) register_again(life.below(2), 1);
    const bool misfortune = life.pass();
    if (!life.up()) expect_no_misunderstanding();
    excused_ = excused_ || !life.up();
    if (misfortune) {
      if (life.chance(15)) remove(life.below(2));
      life.make_link();
    } else if (!life.up() && (life.quiet() || life.chance(5))) {
      life.make_link();
    }
    if (life.network.now_ns() > kDeadlineNs) violation_ = "a request hangs";
  }

  void expect_no_misunderstanding() {
    for (size_t side = 0; side < 2; ++side) {
      const std::string why = life.end(side).peer().report().gone_because;
      if (why.find("the same version") != std::string::npos) violation_ = why;
    }
  }

  void remove(size_t side) {
    excused_ = true;
    ++totals.removals;
    life.end(side).remove();
    for (auto& remote : sides_[side]->remotes) remote = std::make_shared<Remote>(remote->address);
  }

  void register_again(size_t side, size_t window) {
    excused_ = true;
    Side& own = *sides_[side];
    (void)life.end(side).messages.regions.remove(own.handles[window]);
    own.regions[window].reset();
    offer(side, window);
  }

  void begin(size_t from) {
    Side& own = *sides_[from];
    const auto free = std::ranges::find(own.busy, false);
    if (free == own.busy.end()) {
      if (open_.empty()) --wanted_;  // failed requests have all places
      return;
    }
    auto op = std::make_shared<Op>();
    op->number = static_cast<uint32_t>(ops_.size());
    op->from = from;
    op->slot = static_cast<size_t>(free - own.busy.begin());
    op->window = life.below(kWindows);
    op->opcode = life.chance(60) ? Opcode::kWrite : Opcode::kRead;
    op->tells = static_cast<Tells>(life.below(in_device(op->window) ? 3 : 4));
    op->request = std::make_shared<PeerRequest>();
    *free = true;
    if (!own_of(*op).untouched() || !there(*op).untouched()) violation_ = "written after the end";
    own_of(*op).known = there(*op).known = false;
    if (op->tells != Tells::kSignal) fill(*op, own);
    tell(*op);
    op->request->opcode = op->opcode;
    op->request->submitted_ns = life.network.now_ns();
    if (life.below(1000) < gives_up_ * 3)
      op->request->set_due(life.network.now_ns() + life.below(3'000'000));
    ops_.push_back(op);
    open_.push_back(op);
    --wanted_;
    ++totals.requests;
    if (in_device(op->window) && op->opcode == Opcode::kWrite) ++totals.to_devices;
    (void)life.end(from).peer().submit(op->request);
  }

  Place& own_of(const Op& op) { return sides_[op.from]->own[op.slot]; }
  Place& there(const Op& op) { return sides_[1 - op.from]->windows[op.window][op.slot]; }

  void fill(Op& op, Side& own) {
    Place &here = own_of(op), &peer = there(op);
    (op.opcode == Opcode::kWrite ? peer : here).bytes.fill(std::byte{0x77});
    Place& source = op.opcode == Opcode::kWrite ? here : peer;
    uint64_t at = 0;
    for (uint64_t parts = 1 + life.below(4); parts > 0; --parts) {
      const uint64_t bytes = 1 + life.below(life.chance(20) ? kSlotBytes / 4 : 600);
      op.parts.push_back({at, bytes});
      for (uint64_t i = at; i < at + bytes; ++i) source.bytes[i] = pattern(op.number, i);
      at += bytes + (life.chance(30) ? 0 : 8);
      if (at + kSlotBytes / 4 > kSlotBytes) break;
    }
    const auto& remote = own.remotes[op.window];
    op.request->remotes.push_back(remote);
    op.request->regions.push_back(own.own_region);
    const auto base = reinterpret_cast<uint64_t>(peer.bytes.data()) - remote->address.base;
    for (const Part& part : op.parts) {
      op.request->append({here.bytes.data() + part.offset, &own.own_region->memory, remote.get(),
                          base + part.offset, part.bytes});
    }
  }

  void tell(Op& op) {
    auto& messages = op.request->messages;
    if (op.tells == Tells::kImmediate) {
      messages.push_back(Message::of(MessageKind::kImmediate, op.number));
    } else if (op.tells == Tells::kNotice) {
      messages.push_back(Message::of(MessageKind::kNotice, uint64_t{op.number}));
      messages[0].payload.resize(8 + life.below(life.chance(80) ? 100 : 4000));
    } else if (op.tells == Tells::kSignal) {
      const RegionAddress& to = sides_[op.from]->remotes[op.window]->address;
      std::memset(there(op).bytes.data(), 0, sizeof(uint64_t));
      const auto at = reinterpret_cast<uint64_t>(there(op).bytes.data()) - to.base;
      messages.push_back(
          Message::of(MessageKind::kSignal, SignalWords{to.region, to.nonce, at, op.number + 1}));
    }
  }

  void cancel_one() {
    if (open_.empty()) return;
    open_[life.below(open_.size())]->request->cancel(life.network.now_ns());
  }

  void fetch(size_t side) {
    std::vector<uint64_t> peers;
    for (const Notice& notice : life.end(side).messages.notices.fetch(64, &peers)) {
      uint64_t number = 0;
      std::memcpy(&number, notice.bytes->data(), sizeof number);
      told(side, static_cast<uint32_t>(number));
    }
  }

  // The program at this side is told that its memory is its own again.
  void told(size_t side, uint32_t number) {
    if (number >= ops_.size() || ops_[number]->from == side) {
      violation_ = "a message that nobody sent";
      return;
    }
    Op& op = *ops_[number];
    if (++op.told > 1) violation_ = "a message comes twice";
    ++totals.told;
    if (op.request->done()) return;  // it has failed, see settle_bad()
    if (!has(op, op.opcode == Opcode::kWrite ? there(op) : own_of(op)))
      violation_ = "told too early";
    there(op).use_again(kAfterTold);
    if (!op.request->moved()) ++totals.followed;  // its own end does not know yet that it has come
  }

  static bool has(const Op& op, const Place& place) {
    return std::ranges::all_of(op.parts, [&](const Part& part) {
      for (uint64_t i = part.offset; i < part.offset + part.bytes; ++i) {
        if (place.bytes[i] != pattern(op.number, i)) return false;
      }
      return true;
    });
  }

  void settle_those_done() {
    std::erase_if(open_, [this](const auto& op) {
      if (!op->request->done()) return false;
      const bool good = op->request->outcome().error.status == Status::kOk;
      good ? settle_good(*op) : settle_bad(*op);
      return true;
    });
  }

  void settle_good(Op& op) {
    ++totals.done;
    const bool tells = op.tells == Tells::kImmediate || op.tells == Tells::kNotice;
    if (tells && op.told == 0) violation_ = "it ended before the peer was told";
    if (op.tells == Tells::kSignal) {
      uint64_t counter = 0;
      std::memcpy(&counter, there(op).bytes.data(), sizeof counter);
      if (counter != op.number + 1) violation_ = "a signal is lost, or comes twice";
    } else if (tells) {
      if (!there(op).untouched()) violation_ = "written again after the peer was told";
    } else if (op.opcode == Opcode::kWrite && !has(op, there(op))) {
      violation_ = "it ended before its bytes were there";
    }
    if (op.opcode == Opcode::kRead && !has(op, own_of(op))) violation_ = "wrong bytes were read";
    uint64_t bytes = 0;
    for (const Part& part : op.parts) bytes += part.bytes;
    if (op.request->outcome().bytes != bytes) violation_ = "wrong bytes in its result";
    own_of(op).use_again(kAfterEnd);
    there(op).use_again(kAfterTold);
    sides_[op.from]->busy[op.slot] = false;
  }

  // Its places are not used for another request, so that what is late is seen.
  void settle_bad(Op& op) {
    const Outcome& outcome = op.request->outcome();
    const bool asked =
        outcome.error.status == Status::kTimeout || outcome.error.status == Status::kCancelled;
    ++(asked ? totals.given_up : totals.refused);
    if (!asked && !excused_) violation_ = "it failed for nothing: " + outcome.error.what;
    own_of(op).use_again(kAfterError);
    if (outcome.quiet) there(op).use_again(kAfterError);
  }

  bool done() const { return wanted_ == 0 && open_.empty(); }

  void check_memory() {
    for (int i = 0; i < 50; ++i) {  // what is on its way
      for (size_t side = 0; side < 2; ++side) life.end(side).move();
      if (!life.network.step()) life.network.advance(100'000);
    }
    for (const auto& side : sides_) {
      const auto touched = [](const Place& place) { return !place.untouched(); };
      bool any = std::ranges::any_of(side->own, touched);
      for (const Places& window : side->windows) any |= std::ranges::any_of(window, touched);
      if (any) violation_ = "written after the end";
    }
  }

  std::array<std::unique_ptr<Side>, 2> sides_;
  std::vector<std::shared_ptr<Op>> ops_, open_;
  uint64_t wanted_ = 0, gives_up_ = 0, nonces_ = 0;
  bool deregisters_ = false, has_devices_ = false;
  bool excused_ = false;  // requests may fail though nobody gave them up
  std::string violation_;
};

TEST(PeerSchedules, MemoryIsReadyWhenThePeerIsToldAndIsNotTouchedLater) {
  World world;
  run_seeds(kSchedules, [&](uint64_t seed) { return world.run(seed); });
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  const Totals& all = world.totals;
  std::printf(
      "%llu schedules, %llu requests (%llu writes to devices): %llu done, %llu given up, %llu "
      "refused; %llu messages, %llu of them behind their bytes; %llu removals, %llu rails made to "
      "die, %llu links\n",
      number(all.schedules), number(all.requests), number(all.to_devices), number(all.done),
      number(all.given_up), number(all.refused), number(all.told), number(all.followed),
      number(all.removals), number(world.life.deaths), number(world.life.links));
  if (all.schedules < 300) return;
  EXPECT_GT(all.done, all.schedules * 20);
  EXPECT_GT(all.to_devices, all.schedules * 3);
  EXPECT_GT(all.strict, all.schedules / 5);  // no request could fail by itself
  EXPECT_GT(all.given_up, all.schedules / 10);
  EXPECT_GT(all.refused, all.schedules / 10);
  EXPECT_GT(all.followed, all.schedules);
  EXPECT_GT(all.removals, all.schedules / 10);
  EXPECT_GT(world.life.deaths, all.schedules / 2);
  EXPECT_GT(world.life.links, all.schedules);
}

}  // namespace
}  // namespace slime::test
