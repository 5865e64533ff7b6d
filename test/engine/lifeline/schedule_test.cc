// A million random lives, or as many as fit into the time of a test, of a link whose owner asks it
// to live on without rails: all rails die, the connection beside them breaks, ends are stopped, and
// transfers go both ways meanwhile. Nothing is lost, no stripe arrives twice, and nothing is
// written late. A violation prints its seed:
//   SLIME_SEED=n build/test/engine --gtest_filter=LifelineSchedules.*
// and SLIME_SCHEDULES=m runs m of them, from that seed on.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "test/support/quiet_transfers.h"
#include "test/support/seeds.h"
#include "test/support/sim/lifeline.h"
#include "test/support/sim_hosts.h"
#include "test/support/transfer_end.h"

namespace slime::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSchedules = 5'000;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSchedules = 10'000;
#else
constexpr uint64_t kSchedules = 1'000'000;
#endif
constexpr size_t kRails = 3;
constexpr uint64_t kMostBytes = 9000, kGap = 64, kPlace = kMostBytes + kGap;
constexpr size_t kArena = TransferEnd::kSlots * kPlace;
constexpr uint64_t kDeadlineNs = 60'000'000'000;
constexpr std::byte kNobodys{0x55}, kPoison{0xee};
constexpr std::array<uint32_t, 8> kSizes = {0, 1, 127, 129, 300, 1000, 4096, kMostBytes};

Settings lifeline_settings() {
  Settings settings;
  settings.min_stripe = 128;
  settings.rail_timeout = 0.002;
  settings.rail_retry = 20e-6;
  settings.connect_timeout = 0.001;
  settings.watermark = 4;
  return settings;
}

// One host with its end of the link, and the memory that the peer writes into.
struct Side {
  explicit Side(sim::Network& network, const char* name)
      : host(network, kRails, RailCaps(), lifeline_settings(), name),
        source(kArena),
        target(kArena),
        source_region(*host.device().memory().acquire({source.data(), kArena})),
        target_region(*host.device().memory().acquire({target.data(), kArena})) {}

  void share_quietly_with(Side& peer) {
    quiet = std::make_unique<QuietTransfers>(host.device(), peer.host.device());
  }

  SimHost host;
  std::vector<std::byte> source, target;
  const MemoryRegion *source_region, *target_region;
  std::unique_ptr<TransferEnd> end;
  std::unique_ptr<QuietTransfers> quiet;
  std::array<uint64_t, TransferEnd::kSlots> bytes = {}, pattern = {};  // of what it sends
  uint64_t stopped_until_ns = 0;
};

struct Totals {
  uint64_t schedules = 0, transfers = 0, deaths = 0, cuts = 0, stranded = 0, rejoins = 0;
  uint64_t quiet = 0, refused = 0;
};

class World {
 public:
  World() {
    active_.share_quietly_with(passive_);
    passive_.share_quietly_with(active_);
  }
  std::string run(uint64_t seed) {
    violation_.clear();
    random_ = sim::Random(seed);
    network_.reset(seed);
    draw();
    make_link();
    while (violation_.empty() && !finish_if_done()) turn();
    for (Side* side : sides_) {
      side->quiet->end();
      side->end.reset();
    }
    // remote_access counts refused works, which this test posts on purpose.
    const sim::Violations& misuse = network_.violations();
    if (violation_.empty() && misuse.total() != misuse.remote_access) {
      violation_ = "a rail was misused";
    }
    ++totals_.schedules;
    return violation_;
  }

  Totals totals() const {
    Totals all = totals_;
    for (const Side* side : sides_) {
      all.quiet += side->quiet->moved();
      all.refused += side->quiet->refused();
    }
    return all;
  }

 private:
  uint64_t below(uint64_t bound) { return random_.up_to(bound - 1); }
  bool chance(uint64_t percent) { return below(100) < percent; }

  void draw() {
    RailCaps caps;
    caps.ordered = chance(50);
    caps.arrives_unpolled = chance(50);
    caps.confirms_in_hardware = caps.arrives_unpolled && chance(50);
    caps.send_queue_depth = chance(20) ? 2 : 16;
    caps.max_batch = 8;
    caps.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
    caps.max_outstanding_reads = chance(50) ? 1 : 12;
    caps.goes_on_after_refusal = chance(50);
    sim::RailModel model;
    model.rate_mbps = chance(50) ? 100'000 : 1'000;
    model.latency_ns = 500 + below(5000);
    model.jitter_ns = caps.ordered ? 0 : below(20'000);
    model.connect_retries = chance(30) ? 10 : 0;
    model.notice_ns = below(30'000);
    model.one_sided_ppm = chance(50) ? 500'000 : 0;
    for (Side* side : sides_) {
      for (size_t i = 0; i < kRails; ++i) {
        caps.name = std::string(side == &active_ ? "a." : "b.") + std::to_string(i);
        side->host.rails[i]->configure(caps, model);
      }
      std::ranges::fill(side->target, kNobodys);
      side->stopped_until_ns = 0;
      side->bytes = side->pattern = {};
    }
    rails_ = 1 + static_cast<uint32_t>(below(kRails));
    turns_left_ = 1 + static_cast<uint32_t>(below(10));
    silent_ = !caps.confirms_in_hardware && chance(25);  // a NIC gives a dead path up
    wanted_ = 5 + below(60);
    started_ = 0;
    seen_ = {};
    beside_.connect_ns = below(100'000);
    beside_.latency_ns = below(20'000);
    beside_.lost_ppm = chance(30) ? 100'000 : 0;
  }

  void make_link() {
    // The numbers of links spread them over rails: each seed starts at the same one.
    for (Side* side : sides_) {
      while (side->host.device().number_link() % 6 != 5) continue;
    }
    const LinkMemoryBytes memory = TransferEnd::memory_bytes(rails_);
    SimEnds ends = connect(network_, active_.host, passive_.host, rails_,
                           {memory, memory, {}, true, chance(30) ? 4U : 0U});
    ends.active.lifeline_seconds = ends.passive.lifeline_seconds = 20;
    auto caller = std::make_unique<sim::LifelineCaller>(
        network_, random_, beside_, [this](std::unique_ptr<LifelineStream> stream) {
          passive_.end->link().take_lifeline(std::move(stream));
        });
    caller_ = caller.get();
    ends.active.lifeline_dialer = std::move(caller);
    active_.end = std::make_unique<TransferEnd>(*active_.host.devices, active_.host.device(),
                                                std::move(ends.active));
    passive_.end = std::make_unique<TransferEnd>(*passive_.host.devices, passive_.host.device(),
                                                 std::move(ends.passive));
    for (Side* side : sides_) side->quiet->serve(side->end->link());
  }

  void turn() {
    for (Side* side : sides_) {
      if (network_.now_ns() < side->stopped_until_ns) continue;
      if (started_ < wanted_ && chance(50))
        start(*side, static_cast<uint32_t>(below(TransferEnd::kSlots)));
      if (side->end->progress() != Status::kOk) {
        violation_ = "the link failed: " + side->end->link().context().failure().what;
      }
      if (!side->end->violation().empty()) violation_ = side->end->violation();
      if (started_ < wanted_ && chance(30)) start_quietly(*side);
      if (const std::string wrong = side->quiet->progress(); !wrong.empty()) violation_ = wrong;
    }
    check(active_, passive_);
    check(passive_, active_);
    if (active_.end->link().rails().up_count() == 0) ++totals_.stranded;
    if (chance(50)) network_.advance(below(2000));
    if (turns_left_ > 0 && chance(3)) kill_or_revive_a_rail();
    if (turns_left_ > 0 && chance(2)) totals_.cuts += caller_->cut() ? 1 : 0;
    if (turns_left_ > 0 && chance(1))
      sides_[below(2)]->stopped_until_ns = network_.now_ns() + below(3'000'000);
    if (turns_left_ == 0) revive_all();
    // What is on its way beside the rails is no event of the network.
    const bool beside =
        active_.end->link().rails().up_count() == 0 || passive_.end->link().rails().up_count() == 0;
    if (chance(20) && !network_.step()) network_.advance(beside ? 10'000 : 500'000);
    if (network_.now_ns() > kDeadlineNs) violation_ = "the link hangs";
  }

  // A side sends in a slot once the peer has looked at what it got there before.
  void start(Side& from, uint32_t slot) {
    Side& to = other(from);
    if (!from.end->sent(slot) || seen(from)[slot] != from.end->uses_sent(slot)) return;
    std::byte* const source = &from.source[slot * kPlace];
    std::byte* const target = &to.target[slot * kPlace];
    const uint64_t bytes = kSizes[below(kSizes.size())], pattern = random_.next();
    for (size_t i = 0; i < bytes; ++i) source[i] = byte_of(pattern, i);
    std::fill_n(target, kPlace, kPoison);
    from.bytes[slot] = bytes;
    from.pattern[slot] = pattern;
    from.end->send(slot, source, from.source_region, bytes, to.target_region, target);
    ++started_;
    ++totals_.transfers;
  }

  void start_quietly(Side& from) {
    const auto slot = static_cast<uint32_t>(below(QuietTransfers::kSlots));
    if (!from.quiet->idle(slot)) return;
    from.quiet->begin(slot, chance(50) ? Opcode::kRead : Opcode::kWrite,
                      kSizes[below(kSizes.size())], random_.next(), chance(10));
    ++started_;
  }

  // What has arrived is right, and what nobody sends to is not written.
  void check(Side& from, Side& to) {
    for (uint32_t slot = 0; slot < TransferEnd::kSlots; ++slot) {
      std::byte* const target = &to.target[slot * kPlace];
      if (seen(from)[slot] == to.end->uses_received(slot)) continue;
      ++seen(from)[slot];
      for (size_t i = 0; i < kPlace; ++i) {
        const bool inside = i < from.bytes[slot];
        const std::byte right = inside ? byte_of(from.pattern[slot], i) : kPoison;
        if (target[i] != right) violation_ = inside ? "a byte is wrong" : "a byte too many";
      }
      std::fill_n(target, kPlace, kNobodys);
    }
  }

  bool finish_if_done() {
    if (started_ < wanted_) return false;
    for (Side* side : sides_) {
      for (uint32_t slot = 0; slot < TransferEnd::kSlots; ++slot) {
        if (!side->end->sent(slot) || seen(*side)[slot] != side->end->uses_sent(slot)) return false;
      }
    }
    if (!active_.quiet->all_idle() || !passive_.quiet->all_idle()) return false;
    for (Side* side : sides_) {
      if (side->quiet->written_late()) violation_ = "quiet memory was written late";
      if (std::ranges::any_of(side->target, [](std::byte b) { return b != kNobodys; })) {
        violation_ = "memory was written late";
      }
      totals_.rejoins += side->end->link().rejoins();
    }
    return true;
  }

  void kill_or_revive_a_rail() {
    --turns_left_;
    const size_t i = below(rails_);
    for (Side* side : sides_) {
      if (side->host.rails[i]->dead()) return side->host.rails[i]->revive();
    }
    ++totals_.deaths;
    sides_[below(2)]->host.rails[i]->kill(silent_ && chance(50) ? sim::Death::kSilent
                                                                : sim::Death::kNoticed);
  }
  void revive_all() {
    for (Side* side : sides_) {
      for (sim::Rail* rail : side->host.rails) {
        if (rail->dead()) rail->revive();
      }
    }
  }

  static std::byte byte_of(uint64_t pattern, size_t i) {
    return static_cast<std::byte>((pattern + i * 0x9e3779b97f4a7c15) >> 32 & 0xff);
  }
  Side& other(Side& side) { return &side == &active_ ? passive_ : active_; }
  // Transfers of a side that the harness has looked at.
  std::array<uint32_t, TransferEnd::kSlots>& seen(Side& from) { return seen_[&from == &active_]; }

  sim::Network network_{1};
  sim::Random random_{1};
  Side active_{network_, "a"}, passive_{network_, "b"};
  const std::array<Side*, 2> sides_ = {&active_, &passive_};
  std::array<std::array<uint32_t, TransferEnd::kSlots>, 2> seen_ = {};
  sim::LifelineModel beside_;
  sim::LifelineCaller* caller_ = nullptr;
  uint32_t rails_ = 0, turns_left_ = 0;
  bool silent_ = false;
  uint64_t wanted_ = 0, started_ = 0;
  std::string violation_;
  Totals totals_;
};

TEST(LifelineSchedules, NothingIsLostAndNothingComesTwice) {
  World world;
  run_seeds(kSchedules, [&](uint64_t seed) { return world.run(seed); });
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  const Totals all = world.totals();
  std::printf(
      "%llu schedules, %llu transfers, %llu reads and silent writes, %llu refused, %llu rails made "
      "to die, %llu cuts beside them, %llu turns without a rail, %llu rails back\n",
      number(all.schedules), number(all.transfers), number(all.quiet), number(all.refused),
      number(all.deaths), number(all.cuts), number(all.stranded), number(all.rejoins));
  if (all.schedules < 1000) return;
  EXPECT_GT(all.quiet, all.schedules);
  EXPECT_GT(all.refused, all.schedules / 10);
  EXPECT_GT(all.stranded, all.schedules);
  EXPECT_GT(all.cuts, all.schedules / 10);
  EXPECT_GT(all.rejoins, all.schedules);
}

}  // namespace
}  // namespace slime::test
