#include "tools/perf/benchmark.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "tools/common/bytes.h"
#include "tools/perf/report/figures.h"
#include "tools/perf/report/progress.h"
#include "tools/perf/values.h"

namespace slime::perf {
namespace {

using nlohmann::json;

// Bytes of poison behind what an operation may write; they must not change.
constexpr size_t kGuardBytes = 4096;
// A checked run is a burst of operations on different parts of the buffers, as timed ones are:
// single operations would not show a mix-up between one operation and the next.
constexpr uint32_t kBurst = 8;
constexpr size_t kBurstBytes = 4 << 20;
// The longest time between two checks for a request to end. The checked operations that follow and
// the end of the run take longer: a request is answered within about a second.
constexpr uint64_t kAnswerNs = 200'000'000;

Counts counts_for(const Options& options, DataType type, uint64_t bytes, int ranks) {
  return counts_of(options.collective, bytes / size_of(type), size_of(type), ranks);
}

size_t operation_bytes(const Counts& counts, DataType type) {
  return std::max(counts.send, counts.receive) * size_of(type);
}

// One row, or one half of it, in the terms of the plan.
struct Half {
  Shape shape;
  Counts counts;
  size_t stride = 0;   // bytes of one operation
  std::string where;   // for people
  bool checks = true;  // what comes out is checked
  bool lasts = false;  // it is repeated

  double algorithm_bytes() const {
    return static_cast<double>(
        perf::algorithm_bytes(shape.collective, counts, size_of(shape.type), shape.ranks));
  }
};

// States: running -> ending, once the ranks have agreed on a request to end. Invariant: every rank
// makes the same calls in the same order, so what one rank alone knows (its clock, its signals) is
// exchanged before any rank acts on it. The buffers belong to the caller, and are written between
// two jobs only. Thread: the main thread.
class Benchmark {
 public:
  Benchmark(const RunSetup& setup, Communicator* communicator)
      : setup_(setup), options_(*setup.options), communicator_(*communicator) {}

  bool ended_early() const { return ending_; }

  Result<json> run_row(const Case& one) {
    Half half = half_of(one);
    const Shape& shape = half.shape;
    json row = {{"size", half.stride},       {"count", shape.count},
                {"type", name_of(one.type)}, {"redop", name_of(one.op)},
                {"root", one.root},          {"protocol", name_of(shape.protocol)},
                {"channels", shape.channels}};
    const std::string what = half.where;
    for (const bool in_place : {false, true}) {
      half.shape.in_place = in_place;
      half.where = what + (in_place ? ", in place" : ", out of place");
      // nccl-tests runs alltoall and sendrecv in place too, and shows N/A for what then comes out.
      half.checks = options_.checks > 0 && !(in_place && is_point_to_point(options_.collective));
      half.lasts = options_.duration_s > 0 && (options_.iterations > 0 || half.checks);
      setup_.heartbeat->enter(half.where);
      auto measured = measure(half);
      if (!measured) return fail(measured.error());
      row[in_place ? "in_place" : "out_of_place"] = std::move(*measured);
    }
    return row;
  }

 private:
  Half half_of(const Case& one) const {
    Half half;
    half.counts = counts_for(options_, one.type, one.bytes, setup_.ranks);
    half.stride = operation_bytes(half.counts, one.type);
    half.where = std::string(name_of(options_.collective)) + " " + name_of(one.type) + " " +
                 (one.op != RedOp::kNone ? std::string(name_of(one.op)) + " " : "") +
                 tools::format_bytes(half.stride);
    half.shape = {.collective = options_.collective,
                  .type = one.type,
                  .op = one.op,
                  .count = half.counts.param,
                  .root = std::max(0, one.root),
                  .rank = setup_.rank,
                  .ranks = setup_.ranks,
                  .channels = setup_.channels,
                  .direct = options_.direct};
    choose_path(&half.shape,
                is_point_to_point(options_.collective) ? half.shape.bytes() : half.stride);
    return half;
  }

  // The protocol and the channels for so many bytes.
  void choose_path(Shape* shape, size_t bytes) const {
    const int channels = setup_.channels;
    if (options_.algorithm == Algorithm::kCollNet) {  // NCCL has no other protocol for it
      shape->channels = coll_channels_for(bytes, channels);
      return;
    }
    shape->protocol = options_.protocol.value_or(
        default_protocol(options_.collective, bytes, setup_.ranks, channels, setup_.protocols));
    if (is_point_to_point(options_.collective)) return;
    shape->channels = channels_for(shape->protocol, bytes, setup_.ranks, channels);
  }

  // After a request to end, the in-place half of the row that was going on is left out.
  Result<json> measure(const Half& half) {
    const uint64_t began_ns = steady_now_ns();
    Tally tally;
    while (!ending_) {
      Result<void> done;
      if (options_.iterations > 0) done = time(half, &tally);
      if (done) done = check_some(half, began_ns, &tally);
      if (!done) return fail(done.error());
      if (!half.lasts) break;
      const auto again = agree_to_go_on(began_ns);
      if (!again) return fail(again.error());
      if (!*again) break;
    }
    return gather(setup_.member, tally, half.algorithm_bytes(),
                  bus_factor(options_.collective, setup_.ranks));
  }

  // Exchanges one number of each rank and returns the largest. Whether a rank has a request to end
  // is exchanged too, because a signal may have reached one rank only.
  Result<uint64_t> agree(const char* label, const char* key, uint64_t value, const char* subject) {
    auto all = setup_.member->exchange(label, {{"ending", end_requested() ? 1 : 0}, {key, value}});
    if (!all) return fail(all.error());
    int64_t most = 0;
    for (const json& part : *all) {
      const int64_t ending = number_in(part, "ending", -1), theirs = number_in(part, key, -1);
      if (ending < 0 || theirs < 0) {
        return fail(make_error(Status::kRemote, 0, "a rank sent malformed words on %s", subject));
      }
      ending_ = ending_ || ending != 0;
      most = std::max(most, theirs);
    }
    return static_cast<uint64_t>(most);
  }

  // False at all ranks once the time of one of them is over: their clocks differ.
  Result<bool> agree_to_go_on(uint64_t began_ns) {
    const bool over =
        static_cast<double>(steady_now_ns() - began_ns) / 1e9 >= options_.duration_s / 2;
    return agree("another round", "over", over ? 1 : 0, "going on").map([this](uint64_t any_over) {
      return any_over == 0 && !ending_;
    });
  }

  // How many operations are run before the next check for a request to end; 0: there is one.
  Result<uint32_t> agree_on_operations(const Tally& tally) {
    const auto slowest_ns = agree("ready", "operation_ns", tally.operation_ns, "its readiness");
    if (!slowest_ns) return fail(slowest_ns.error());
    if (options_.duration_s == 0) return UINT32_MAX;
    if (ending_) return 0;
    if (*slowest_ns == 0) return 1;
    return static_cast<uint32_t>(std::clamp<uint64_t>(kAnswerNs / *slowest_ns, 1, UINT32_MAX));
  }

  // With the figures of this rank only: those of the others are exchanged at the end of the row.
  void show_progress(const Half& half, const Tally& tally) {
    if (!half.lasts) return setup_.heartbeat->beat();
    std::string text = half.where;
    if (tally.operations > 0) {
      const double mean_us = tally.mean_us();
      char rate[96];
      snprintf(rate, sizeof rate, ", %lu operations of %.1f us, %.2f GB/s", tally.operations,
               mean_us, mean_us > 0 ? half.algorithm_bytes() / mean_us / 1e3 : 0);
      text += rate;
    }
    if (tally.checked > 0) {
      text += ", " + std::to_string(tally.checked) + " checked, " + std::to_string(tally.wrong) +
              " elements wrong";
    }
    setup_.heartbeat->enter(std::move(text));
  }

  Result<void> time(const Half& half, Tally* tally) {
    clean(half.shape.type, setup_.send_buffer.size());
    uint32_t warmups = options_.warmups, timed = options_.iterations;
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

  Result<void> run_timed(const Half& half, uint32_t warmups, uint32_t timed, Tally* tally) {
    Job job = job_of(half, warmups + timed, fitting(half.stride));
    if (auto done = communicator_.run(&job); !done) return done;
    const std::vector<uint64_t>& end_ns = job.end_ns;
    tally->operation_ns = std::max<uint64_t>(1, (end_ns.back() - job.start_ns) / end_ns.size());
    uint64_t before = warmups > 0 ? end_ns[warmups - 1] : job.start_ns;
    tally->timed_ns += end_ns.back() - before;
    tally->operations += timed;
    for (size_t i = warmups; i < end_ns.size(); ++i) {
      const uint64_t took_ns = end_ns[i] - std::exchange(before, end_ns[i]);
      tally->samples.add(took_ns);
      tally->longest_ns = std::max(tally->longest_ns, took_ns);
    }
    return {};
  }

  Job job_of(const Half& half, uint32_t operations, uint32_t repeats) const {
    Job job;
    job.shape = half.shape;
    job.operations = operations;
    job.users = {setup_.send_buffer.data(), setup_.receive_buffer.data(), half.stride, repeats};
    if (half.shape.in_place) {  // both lie in the receive buffer
      const size_t unit = static_cast<size_t>(setup_.rank) * size_of(half.shape.type);
      job.users.input = job.users.output + half.counts.send_offset * unit;
      job.users.output += half.counts.receive_offset * unit;
    }
    return job;
  }

  // How often an operation fits into the buffers: like nccl-tests, every repetition uses other
  // memory, so that caches do not hold it.
  uint32_t fitting(size_t stride) const {
    const size_t times = (setup_.send_buffer.size() - kGuardBytes) / std::max<size_t>(1, stride);
    return stride == 0 ? 1 : static_cast<uint32_t>(std::clamp<size_t>(times, 1, UINT32_MAX));
  }

  // Puts ones where checked runs have left other values.
  void clean(DataType type, size_t used) {
    const size_t bytes = filled_ == type ? std::min(dirty_bytes_, used) : used;
    fill_ones(type, bytes, setup_.send_buffer.data());
    fill_ones(type, bytes, setup_.receive_buffer.data());
    filled_ = type;
    dirty_bytes_ = 0;
  }

  // What was timed is checked at least once, also after a request to end.
  Result<void> check_some(const Half& half, uint64_t began_ns, Tally* tally) {
    const uint32_t least = tally->checked == 0 ? 1 : 0;
    const uint32_t most = half.checks ? options_.checks : 0;
    for (uint32_t i = 0; i < most && (i < least || !ending_); ++i) {
      if (auto checked = check(half, tally); !checked) return checked;
      show_progress(half, *tally);
      if (!half.lasts || i + 1 == most) continue;
      if (auto again = agree_to_go_on(began_ns); !again) return fail(again.error());
    }
    return {};
  }

  Result<void> check(const Half& half, Tally* tally) {
    uint32_t burst = std::min(kBurst, fitting(half.stride));
    while (burst > 1 && half.stride * burst > kBurstBytes) --burst;
    const size_t used = half.stride * burst;
    dirty_bytes_ = std::max(dirty_bytes_, used + kGuardBytes);
    Job job = job_of(half, burst, burst);
    job.is_checked = true;
    char* const received = setup_.receive_buffer.data();
    std::memset(received, kPoison, used + kGuardBytes);
    const bool contributes =
        options_.collective != Collective::kBroadcast || setup_.rank == half.shape.root;
    for (uint32_t i = 0; contributes && i < burst; ++i) {
      fill(pattern_of(half, i), setup_.rank, 0, half.counts.send, job.users.input_of(i),
           setup_.heartbeat);
    }
    if (auto done = communicator_.run(&job); !done) return done;
    const bool inject = options_.inject_error && setup_.rank == setup_.ranks - 1;
    if (inject && half.stride > 0) job.users.output_of(0)[size_of(half.shape.type) / 2] ^= 1;
    tally->wrong += count_overwritten(half.shape.type, {received + used, kGuardBytes});
    for (uint32_t i = 0; i < burst; ++i) tally->wrong += verify(half, i, job.users.output_of(i));
    tally->checked += burst;
    repetition_ += burst;
    return {};
  }

  Pattern pattern_of(const Half& half, uint32_t operation) const {
    return {half.shape.type, half.shape.op, setup_.ranks, repetition_ + operation};
  }

  uint64_t verify(const Half& half, uint32_t operation, const char* output) const {
    const Collective collective = options_.collective;
    const size_t count = half.counts.param;
    const size_t own_block = static_cast<size_t>(setup_.rank) * count;
    const auto wrong_from = [&](int source, uint64_t first, const char* got) {
      return count_wrong(pattern_of(half, operation), source, first, count, got, setup_.heartbeat);
    };
    if (reduces(collective)) {
      return wrong_from(-1, collective == Collective::kAllReduce ? 0 : own_block, output);
    }
    if (collective == Collective::kBroadcast) return wrong_from(half.shape.root, 0, output);
    if (collective == Collective::kSendRecv) {
      return wrong_from((setup_.rank + setup_.ranks - 1) % setup_.ranks, 0, output);
    }
    uint64_t wrong = 0;
    for (int source = 0; source < setup_.ranks; ++source, output += half.shape.bytes()) {
      wrong += wrong_from(source, collective == Collective::kAllToAll ? own_block : 0, output);
    }
    return wrong;
  }

  const RunSetup& setup_;
  const Options& options_;
  Communicator& communicator_;
  bool ending_ = false;
  uint32_t repetition_ = 0;         // of checked data; another one for every operation
  std::optional<DataType> filled_;  // with ones of this type ...
  size_t dirty_bytes_ = 0;          // ... but for this many bytes at the start
};

}  // namespace

size_t buffer_bytes(const Options& options, int ranks) {
  size_t most = 0;
  for (const Case& one : cases_of(options, 1)) {
    const Counts counts = counts_for(options, one.type, one.bytes, ranks);
    most = std::max(most, operation_bytes(counts, one.type));
  }
  return most + kGuardBytes;
}

Result<void> run_benchmark(const RunSetup& setup, Communicator* communicator,
                           const std::function<void(const json&)>& show, bool* ended_early) {
  Benchmark benchmark(setup, communicator);
  Result<void> done;
  for (const Case& one : cases_of(*setup.options, setup.ranks)) {
    if (!done || benchmark.ended_early()) break;
    if (auto row = benchmark.run_row(one)) {
      show(*row);
    } else {
      done = fail(row.error());
    }
  }
  *ended_early = benchmark.ended_early();
  return done;
}

}  // namespace slime::perf
