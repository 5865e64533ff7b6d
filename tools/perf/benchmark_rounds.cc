// One half of a row, round by round: how long it lasts, what the ranks agree on, and what is shown
// meanwhile.

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "tools/perf/benchmark.h"
#include "tools/perf/report/progress.h"

namespace slime::perf {
namespace {

// Without a look for a request to end. With the checks and the end of the run that is a second.
constexpr uint64_t kAnswerNs = 200'000'000;

}  // namespace

// After a request to end, the in-place half of the row that was going on is left out.
Result<Measurement> Benchmark::measure(const Half& half) {
  const uint64_t began_ns = SteadyClock::instance().now_ns();
  Tally tally;
  while (!ending_) {
    if (setup_.options->iterations > 0) {
      if (auto timed = time(half, &tally); !timed) return fail(timed.error());
    }
    if (auto checked = check_some(half, began_ns, &tally); !checked) return fail(checked.error());
    if (!lasts(half)) break;
    const auto again = agree_to_go_on(began_ns);
    if (!again) return fail(again.error());
    if (!*again) break;
  }
  return gather(half, tally);
}

// Whether a half is repeated.
bool Benchmark::lasts(const Half& half) const {
  const Options& options = *setup_.options;
  return options.duration_s > 0 && (options.iterations > 0 || is_checked(half));
}

// Clocks differ, and a signal may have reached one rank only.
Result<bool> Benchmark::agree_to_go_on(uint64_t began_ns) {
  const double seconds = static_cast<double>(SteadyClock::instance().now_ns() - began_ns) / 1e9;
  const bool over = seconds >= setup_.options->duration_s / 2;
  auto all = setup_.member->exchange("another round",
                                     {{"over", over ? 1 : 0}, {"ending", end_requested() ? 1 : 0}});
  if (!all) return fail(all.error());
  bool all_go_on = true;
  for (const nlohmann::json& part : *all) {
    const int64_t is_over = number_in(part, "over", -1), is_ending = number_in(part, "ending", -1);
    if (is_over < 0 || is_ending < 0) {
      return fail(make_error(Status::kRemote, 0, "a rank sent malformed words on going on"));
    }
    all_go_on = all_go_on && is_over == 0;
    ending_ = ending_ || is_ending != 0;
  }
  return all_go_on && !ending_;
}

// How many operations are run before the next look for a request to end; 0: there was one.
Result<uint32_t> Benchmark::agree_on_operations(const Tally& tally) {
  auto all = setup_.member->exchange(
      "ready", {{"ending", end_requested() ? 1 : 0}, {"operation_ns", tally.operation_ns}});
  if (!all) return fail(all.error());
  if (setup_.options->duration_s == 0) return UINT32_MAX;
  int64_t slowest_ns = 0;
  for (const nlohmann::json& part : *all) {
    const int64_t is_ending = number_in(part, "ending", -1);
    const int64_t operation_ns = number_in(part, "operation_ns", -1);
    if (is_ending < 0 || operation_ns < 0) {
      return fail(make_error(Status::kRemote, 0, "a rank sent malformed words on its readiness"));
    }
    ending_ = ending_ || is_ending != 0;
    slowest_ns = std::max(slowest_ns, operation_ns);
  }
  if (ending_) return 0;
  if (slowest_ns == 0) return 1;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(kAnswerNs / static_cast<uint64_t>(slowest_ns), 1, UINT32_MAX));
}

// What was timed is checked at least once, also after a request to end.
Result<void> Benchmark::check_some(const Half& half, uint64_t began_ns, Tally* tally) {
  const uint32_t least = tally->checked == 0 ? 1 : 0;
  const uint32_t most = is_checked(half) ? setup_.options->checks : 0;
  for (uint32_t i = 0; i < most && (i < least || !ending_); ++i) {
    if (auto checked = check(half, tally); !checked) return checked;
    show_progress(half, *tally);
    if (!lasts(half) || i + 1 == most) continue;
    if (auto again = agree_to_go_on(began_ns); !again) return fail(again.error());
  }
  return {};
}

// With the figures of this rank only: those of the others are exchanged at the end of the row.
void Benchmark::show_progress(const Half& half, const Tally& tally) {
  if (!lasts(half)) return setup_.pulse->beat();
  std::string text = where_;
  if (tally.operations > 0) {
    const double mean_us =
        static_cast<double>(tally.timed_ns) / 1e3 / static_cast<double>(tally.operations);
    const auto bytes = static_cast<double>(algorithm_bytes(half.shape.collective, half.counts,
                                                           half.shape.element_bytes, setup_.ranks));
    char rate[96];
    snprintf(rate, sizeof rate, ", %lu operations of %.1f us, %.2f GB/s", tally.operations, mean_us,
             mean_us > 0 ? bytes / mean_us / 1e3 : 0);
    text += rate;
  }
  if (tally.checked > 0) {
    text += ", " + std::to_string(tally.checked) + " checked, " + std::to_string(tally.wrong) +
            " elements wrong";
  }
  setup_.pulse->enter(std::move(text));
}

Result<void> Benchmark::time(const Half& half, Tally* tally) {
  clean(half.pattern.type, setup_.send_buffer->size());
  uint32_t warmups = setup_.options->warmups, timed = setup_.options->iterations;
  while (warmups + timed > 0) {
    const auto most = agree_on_operations(*tally);
    if (!most) return fail(most.error());
    if (*most == 0) return {};
    const uint32_t warm_now = std::min(warmups, *most);
    const uint32_t timed_now = std::min(timed, *most - warm_now);
    if (auto run = run_timed(half, warm_now, timed_now, tally); !run) return run;
    warmups -= warm_now;
    timed -= timed_now;
    show_progress(half, *tally);
  }
  return {};
}

Result<void> Benchmark::run_timed(const Half& half, uint32_t warmups, uint32_t timed,
                                  Tally* tally) {
  Job job = job_of(half, warmups + timed, fitting(half.stride));
  if (auto done = setup_.communicator->run(&job); !done) return fail(done.error());
  tally->operation_ns =
      std::max<uint64_t>(1, (job.end_ns.back() - job.start_ns) / job.end_ns.size());
  uint64_t before = warmups > 0 ? job.end_ns[warmups - 1] : job.start_ns;
  tally->timed_ns += job.end_ns.back() - before;
  tally->operations += timed;
  for (size_t i = warmups; i < job.end_ns.size(); ++i) {
    const uint64_t took_ns = job.end_ns[i] - before;
    tally->samples.add(took_ns);
    tally->longest_ns = std::max(tally->longest_ns, took_ns);
    before = job.end_ns[i];
  }
  return {};
}

}  // namespace slime::perf
