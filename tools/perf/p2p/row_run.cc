#include "tools/perf/p2p/row_run.h"

#include <cstring>
#include <utility>

#include "tools/perf/p2p/pattern.h"

namespace slime::perf::p2p {
namespace {

// Each slot once, one after the other.
Result<void> move_all(const Requests& requests, uint32_t slots) {
  Result<void> done;
  for (uint32_t slot = 0; done && slot < slots; ++slot) {
    done = requests.begin(slot);
    if (done) done = requests.wait(slot);
  }
  return done;
}

}  // namespace

Result<Row> RowRun::run() {
  Row row;
  row.size = layout_.piece;
  if (is_initiator()) row.rails = endpoint_.peer().rails;
  if (options_.check) {
    if (auto checked = check(&row); !checked) return fail(std::move(checked.error()));
  }
  if (plain_ != nullptr) {
    row.raw.emplace();
    if (auto chosen = choose_way(); !chosen) return fail(std::move(chosen.error()));
  }
  for (uint32_t turn = 0; turn < options_.turns; ++turn) {
    auto done = engine_turn(&row.engine);
    if (done && plain_ != nullptr) done = plain_turn(&*row.raw);
    if (!done) return fail(std::move(done.error()));
  }
  row.prepare_ns = endpoint_.prepare_ns();
  return row;
}

// The plain loop writes where the engine counts.
Result<void> RowRun::check(Row* row) {
  const auto load = [this](const Requests& requests) { return move_all(requests, layout_.slots); };
  auto checked = check(
      options_.operation == Operation::kSignal, [&] { return with_engine(load); }, row);
  if (plain_ == nullptr) return checked;
  for (const uint64_t way : plain_->ways()) {
    if (checked)
      checked = check(
          false, [&] { return with_plain_loop(way, load); }, row);
  }
  return checked;
}

// Before it both ends have other bytes, and those between the pieces must stay.
template <typename Move>
Result<void> RowRun::check(bool counts, Move move, Row* row) {
  const uint32_t salt = is_initiator() ? 1 : 2;
  fill_pattern(endpoint_.memory(), layout_.bytes(), salt);
  if (auto met = partner_.meet("patterns"); !met) return met;
  if (auto moved = move(); !moved) return moved;
  if (auto met = partner_.meet("all moved"); !met) return met;
  if (counts && !is_initiator()) count_back();
  const bool changed = !counts && is_initiator() == (options_.operation == Operation::kRead);
  const uint64_t wrong = count_wrong(endpoint_.memory(), layout_, changed ? 3 - salt : salt, salt);
  auto other = partner_.exchange("checked", {{"wrong", wrong}});
  if (!other) return fail(std::move(other.error()));
  row->wrong += wrong + other->at("wrong").get<uint64_t>();
  return {};
}

// Each signal has added 1.
void RowRun::count_back() {
  for (uint32_t slot = 0; slot < layout_.slots; ++slot) {
    uint64_t counter = 0;
    std::byte* const at = endpoint_.memory() + layout_.offset(slot, 0);
    std::memcpy(&counter, at, sizeof counter);
    --counter;
    std::memcpy(at, &counter, sizeof counter);
  }
}

// Messages need a target that takes them.
template <typename Load>
Result<void> RowRun::with_engine(Load load) {
  const bool two = takes_two(options_.operation);
  if (!is_initiator()) return two ? endpoint_.take(layout_, options_.operation) : Result<void>{};
  auto requests = endpoint_.requests(layout_, options_);
  if (!requests) return fail(std::move(requests.error()));
  auto done = load(*requests);
  if (!two) return done;
  auto ended = endpoint_.say_last(options_.operation);  // in any case: the target waits for it
  return done ? ended : done;
}

template <typename Load>
Result<void> RowRun::with_plain_loop(uint64_t way, Load load) {
  if (!is_initiator()) return plain_->serve();
  auto done = load(plain_->requests(layout_, way));
  return done ? plain_->end() : done;
}

// Both ranks do their part of a turn, and the initiator gets to know what that cost the target.
template <typename Part>
Result<void> RowRun::part_of(Sample* sample, Part part) {
  const uint64_t cpu_ns = process_cpu_ns();
  if (auto done = part(); !done) return done;
  if (auto met = partner_.meet("a turn"); !met) return met;
  auto other = partner_.exchange("its cost", {{"cpu_ns", process_cpu_ns() - cpu_ns}});
  if (!other) return fail(std::move(other.error()));
  sample->target_cpu_ns += other->at("cpu_ns").get<uint64_t>();
  return {};
}

Result<void> RowRun::measure_turn(const Requests& requests, double seconds, Sample* sample) const {
  return measure(requests, layout_.slots, layout_.bytes_of_request(), seconds, sample);
}

Result<void> RowRun::engine_turn(Sample* sample) {
  return part_of(sample, [&] {
    const slime_peer_info before = endpoint_.peer();
    auto done = with_engine(
        [&](const Requests& requests) { return measure_turn(requests, seconds_, sample); });
    const slime_peer_info after = endpoint_.peer();  // after the turn the other rank may end
    if (after.works < before.works) return done;     // over another link
    sample->works += after.works - before.works;
    sample->doorbells += after.doorbells - before.doorbells;
    return done;
  });
}

Result<void> RowRun::plain_turn(Sample* sample) {
  return part_of(sample, [&] {
    return with_plain_loop(
        way_, [&](const Requests& requests) { return measure_turn(requests, seconds_, sample); });
  });
}

// The best one is compared: each gets a part of a turn first.
Result<void> RowRun::choose_way() {
  const auto ways = plain_->ways();
  way_ = ways.front();
  double most = 0;
  for (const uint64_t way : ways) {
    if (way != ways.front() && way >= layout_.piece) continue;
    Sample trial;
    const auto load = [&](const Requests& requests) {
      return measure_turn(requests, seconds_ / static_cast<double>(ways.size()), &trial);
    };
    if (auto done = with_plain_loop(way, load); !done) return done;
    if (auto met = partner_.meet("a trial"); !met) return met;
    if (trial.megabytes_per_second() <= most) continue;
    most = trial.megabytes_per_second();
    way_ = way;
  }
  return {};
}

}  // namespace slime::perf::p2p
