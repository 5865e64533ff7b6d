#include "switch/p4driver/p4_job.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace slime::net {
namespace {

// A packet that was in the pipeline when an entry changed has left it after this time. It needs far
// less, unless the device is a program, as bmv2 is, and waits for a processor.
constexpr std::chrono::milliseconds kInFlight{100};

auto find_key(std::vector<TableEntry>& entries, const TableEntry& entry) {
  return std::ranges::find_if(entries, [&](const TableEntry& e) { return same_key(e, entry); });
}

}  // namespace

// Memory and counters are cleared before any entry leads packets to them. The entry that opens the
// job comes last, after the mirroring session: before that, no packet takes part in an incomplete
// job.
Result<void> P4Job::install() {
  if (auto done = clear_slots(); !done) return done;
  for (const CounterCell& cell : program_.job_counters(place_)) {
    if (auto done = runtime_.clear_counter(cell); !done) return done;
  }
  for (const MulticastGroup& group : program_.job_groups(spec_, place_)) {
    groups_.push_back(group.id);
    if (auto done = runtime_.add_group(group); !done) return done;
  }
  std::vector<TableEntry> entries = program_.job_entries(spec_, place_);
  const TableEntry opening = std::move(entries.back());
  entries.pop_back();
  for (const TableEntry& entry : entries) {
    if (auto done = add(entry); !done) return done;
  }
  if (const auto session = program_.job_mirror(spec_, place_)) {
    if (auto done = runtime_.mirror(*session); !done) return done;
  }
  if (auto done = add(opening); !done) return done;
  state_ = State::kOpen;
  return {};
}

Result<void> P4Job::add(const TableEntry& entry) {
  auto added = runtime_.add(entry);
  if (added) entries_.push_back(entry);
  return added;
}

// In the opposite order: the first step closes the job. What was removed leaves the list at once,
// so a repeated call goes on where the last one failed.
Result<void> P4Job::uninstall() {
  for (; !entries_.empty(); entries_.pop_back()) {
    if (auto done = runtime_.remove(entries_.back()); !done) return done;
    state_ = State::kClosed;
  }
  for (; !groups_.empty(); groups_.pop_back()) {
    if (auto done = runtime_.remove_group(groups_.back()); !done) return done;
  }
  return {};
}

// First the entries change, so that packets of the old generation are refused. Packets that had
// been admitted before may still be in the pipeline, and would write into cleared slots: kInFlight
// lets them pass. The workers get the new token after this has returned, so no contribution of the
// new generation is cleared. Where no register must be cleared, there is nothing to wait for.
Result<void> P4Job::fence(uint8_t generation, uint32_t token) {
  spec_.generation = generation;
  spec_.token = token;
  auto changed = replace_entries(program_.job_entries(spec_, place_));
  if (!changed) return changed;
  if (program_.job_registers(spec_, place_).empty()) return {};
  std::this_thread::sleep_for(kInFlight);
  return clear_slots();
}

// Entries that are not wanted are removed first, the last one before all others, because it opens
// the job. Then the wanted ones get their actions, or are added, in order.
Result<void> P4Job::replace_entries(std::vector<TableEntry> wanted) {
  for (size_t i = entries_.size(); i-- > 0;) {
    if (find_key(wanted, entries_[i]) != wanted.end()) continue;
    if (auto done = runtime_.remove(entries_[i]); !done) return done;
    entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(i));
  }
  for (const TableEntry& entry : wanted) {
    const auto there = find_key(entries_, entry);
    if (there == entries_.end()) {
      if (auto done = add(entry); !done) return done;
    } else if (there->action != entry.action) {
      if (auto done = runtime_.modify(entry); !done) return done;
      there->action = entry.action;
    }
  }
  return {};
}

Result<void> P4Job::clear_slots() {
  for (const RegisterRange& range : program_.job_registers(spec_, place_)) {
    if (auto done = runtime_.clear_registers(range); !done) return done;
  }
  return {};
}

Result<JobTotals> P4Job::totals() const {
  JobTotals totals;
  if (is_lost()) return totals;
  const std::vector<CounterCell> cells = program_.job_counters(place_);
  size_t at = 0;
  Result<uint64_t> read;
  totals.each([&](const char*, const char*, uint64_t& value) {
    if (read) read = runtime_.read_counter(cells[at++]);
    value = read.value_or(0);
  });
  if (!read) return fail(std::move(read.error()));
  return totals;
}

void P4Job::lose() {
  state_ = State::kLost;
  entries_.clear();
  groups_.clear();
}

}  // namespace slime::net
