#include "test/collnet/simulation/rounds.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>

#include "test/collnet/simulation/random_reduction.h"
#include "test/collnet/simulation/simulation.h"

namespace slime::test {
namespace {

constexpr uint64_t kLatencyNs = 10'000;

uint32_t below(std::mt19937_64& random, uint64_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

// Mostly few, so that a million rounds take seconds.
std::vector<uint32_t> any_leaves(std::mt19937_64& random) {
  const uint32_t workers = 1 + below(random, below(random, 12) == 0 ? 32 : 4);
  if (workers == 1 || below(random, 4)) return {workers};
  const uint32_t first = 1 + below(random, workers - 1);
  return {first, workers - first};
}

// A window of one packet: as long as a worker takes for one, with all its slots under way.
NetworkOptions any_weather(uint64_t seed, uint32_t slots, std::mt19937_64& random) {
  const uint64_t window = random() % 4 ? 1 + random() % 64 : 0;
  return {.seed = seed,
          .loss = random() % 4 ? below(random, 201) / 1000.0 : 0,
          .duplication = random() % 4 ? below(random, 101) / 1000.0 : 0,
          .latency_ns = kLatencyNs,
          .jitter_ns = window * kLatencyNs / slots};
}

// All, 32-bit numbers only, or these and some others.
uint32_t any_formats(std::mt19937_64& random) {
  const auto some = static_cast<uint32_t>(random()) & sap::kKnownFormats;
  const uint32_t others[] = {sap::kKnownFormats, sap::kKnownFormats, 0, some};
  return sap::kWordFormats | others[random() % 4];
}

Simulation::Options any_shape(uint64_t seed, std::mt19937_64& random) {
  const uint32_t slots = 1 + below(random, uint64_t{1} << below(random, 7));
  return {.leaves = any_leaves(random),
          .slots = slots,
          .lanes = 16 + 8 * (below(random, 3) ? 0 : below(random, 8)),
          .shards = 1 + below(random, 4),
          .half_bits = random() % 2 ? number::HalfBits::k16 : number::HalfBits::k32,
          .formats = any_formats(random),
          .network = any_weather(seed, slots, random)};
}

class Life {
 public:
  explicit Life(uint64_t seed)
      : random_(seed),
        options_(any_shape(seed, random_)),
        simulation_(options_),
        ranks_(workers()) {
    constexpr uint32_t kDepths[] = {1, 2, 8, Worker::kMaxOperations};
    constexpr uint64_t kGaps[] = {1, 10'000, 300'000};
    depth_ = kDepths[random_() % 4];
    gap_ns_ = kGaps[random_() % 3];
    rounds_wanted_ = 300 + random_() % 1500;
    plan_moves();
    forged_ = random_() % 4 == 0;
  }

  RoundsReport run() {
    const bool ended = simulation_.run_until([this] { return advance(); });
    if (!ended) complain("not done after an hour");
    RoundsReport report{.violation = violation_, .shape = words(), .operations = verified_};
    for (uint32_t rank = 0; rank < workers(); ++rank) {
      const WorkerCounters& counters = simulation_.worker(rank).counters();
      report.rounds += counters.results;
      report.retransmitted += counters.retransmitted;
      report.stale += counters.stale;
      report.flag_rounds += counters.flag_rounds;
      report.fine_rounds += counters.fine_rounds;
      report.upper_rounds += counters.upper_rounds;
      report.guess_rounds += counters.guess_rounds;
      report.wrong_guesses += counters.wrong_guesses;
      report.wrong_tokens += counters.wrong_token;
    }
    report.rounds /= workers();
    report.left = moves_done_ > 0;
    report.returned = moves_done_ > 1;
    return report;
  }

 private:
  struct Rank {
    uint64_t next_ns = 0;  // when it may start another operation
    uint64_t done = 0;     // operations, from the first
    std::deque<uint64_t> tickets;
  };

  uint32_t workers() const { return simulation_.workers(); }
  void complain(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }

  void plan_moves();
  bool advance();
  void advance(uint32_t rank);
  void start(uint32_t rank);
  void verify();
  void move();
  void break_switch();
  std::string words() const;

  std::mt19937_64 random_;
  const Simulation::Options options_;
  Simulation simulation_;
  uint32_t depth_;
  uint64_t gap_ns_, rounds_wanted_;
  std::vector<Rank> ranks_;
  std::deque<std::unique_ptr<RandomReduction>> reductions_;  // from number verified_ on
  uint64_t verified_ = 0;
  uint64_t packets_ = 0;            // of the operations that have been drawn
  std::vector<uint64_t> moves_at_;  // rounds of rank 0
  uint32_t moves_done_ = 0;
  uint64_t broken_until_ns_ = 0;  // 0: not broken
  bool forged_ = false;           // somebody sends packets with wrong tokens
  std::string violation_;
};

// A switch that takes the place of a tree is another matter: children have other numbers there.
void Life::plan_moves() {
  const uint64_t fate = random_() % 10;
  if (fate < 6) return;
  moves_at_.push_back(random_() % rounds_wanted_);
  if (fate > 7 && options_.leaves.size() == 1) {
    moves_at_.push_back(moves_at_[0] + random_() % rounds_wanted_ / 2);
  }
}

// True: all is done, or wrong.
bool Life::advance() {
  move();
  if (forged_ && random_() % 8 == 0) simulation_.forge(random_);
  bool all = packets_ >= rounds_wanted_;
  for (uint32_t rank = 0; rank < workers(); ++rank) {
    advance(rank);
    all = all && ranks_[rank].done == verified_ + reductions_.size();
  }
  verify();
  return !violation_.empty() || (all && reductions_.empty());
}

void Life::advance(uint32_t index) {
  Rank& rank = ranks_[index];
  const Worker& worker = simulation_.worker(index);
  if (worker.status() != Status::kOk) {
    return complain("rank " + std::to_string(index) + " failed: " + worker.failure().what);
  }
  while (!rank.tickets.empty() && worker.done(rank.tickets.front())) {
    rank.tickets.pop_front();
    ++rank.done;
  }
  if (rank.tickets.size() < depth_ && simulation_.now_ns() >= rank.next_ns) start(index);
}

void Life::start(uint32_t index) {
  Rank& rank = ranks_[index];
  const uint64_t number = rank.done + rank.tickets.size();
  if (number == verified_ + reductions_.size()) {
    if (packets_ >= rounds_wanted_) return;
    reductions_.push_back(
        std::make_unique<RandomReduction>(RandomReduction::Shape{.workers = workers(),
                                                                 .slots = options_.slots,
                                                                 .lanes = options_.lanes,
                                                                 .half_bits = options_.half_bits,
                                                                 .formats = options_.formats},
                                          random_));
    packets_ += reductions_.back()->packets() + 1;  // that of nothing counts, too
  }
  uint64_t ticket = 0;
  const Operation operation = reductions_[number - verified_]->operation(index);
  const Status status = simulation_.worker(index).start(operation, simulation_.now_ns(), &ticket);
  if (status != Status::kOk) complain(std::string("start: ") + status_name(status));
  rank.tickets.push_back(ticket);
  rank.next_ns = simulation_.now_ns() + random_() % gap_ns_;
}

// The oldest, when all ranks have it.
void Life::verify() {
  while (!reductions_.empty() &&
         std::all_of(ranks_.begin(), ranks_.end(),
                     [this](const Rank& rank) { return rank.done > verified_; })) {
    if (std::string found = reductions_.front()->violation(); !found.empty()) complain(found);
    reductions_.pop_front();
    ++verified_;
  }
}

// The switch dies, is gone for a while, and then the ranks sum up for each other; or a new one
// takes over from them.
void Life::move() {
  if (broken_until_ns_ != 0) {
    if (simulation_.now_ns() < broken_until_ns_) return;
    broken_until_ns_ = 0;
    ++moves_done_;
    return simulation_.move_to_ranks(4);
  }
  const uint64_t round = simulation_.worker(0).counters().results;
  if (moves_done_ == moves_at_.size() || round < moves_at_[moves_done_]) return;
  if (moves_done_ == 0) return break_switch();
  ++moves_done_;
  simulation_.move_to_switch(9, 200);
}

void Life::break_switch() {
  broken_until_ns_ = simulation_.now_ns() + 1 + random_() % 3'000'000;
  if (options_.leaves.size() > 1 && random_() % 2) return simulation_.kill_root();
  simulation_.kill_switch();
}

std::string Life::words() const {
  std::string leaves;
  for (const uint32_t one : options_.leaves) {
    leaves += (leaves.empty() ? "" : "+") + std::to_string(one);
  }
  char text[260];
  std::snprintf(text, sizeof text,
                "%s workers, %u slots, %u lanes, %u shards, %s-bit halves, formats %#x, loss %.3f, "
                "duplication "
                "%.3f, jitter %llu ns, %u operations at once, %u moves",
                leaves.c_str(), options_.slots, options_.lanes, options_.shards,
                options_.half_bits == number::HalfBits::k16 ? "16" : "32", options_.formats,
                options_.network.loss, options_.network.duplication,
                static_cast<unsigned long long>(options_.network.jitter_ns), depth_, moves_done_);
  return text;
}

}  // namespace

RoundsReport run_rounds(uint64_t seed) { return Life(seed).run(); }

}  // namespace slime::test
