#include "tools/perf/benchmark.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tools/common/bytes.h"
#include "tools/perf/collective/pattern.h"

namespace slime::perf {
namespace {

// Bytes of poison behind what an operation may write; they must not change.
constexpr size_t kGuardBytes = 4096;
// A checked run is a burst of operations on different parts of the buffers, as timed ones are:
// single operations would not show a mix-up between one operation and the next.
constexpr uint32_t kBurst = 8;
constexpr size_t kBurstBytes = 4 << 20;

Counts counts_for(const Options& options, DataType type, uint64_t bytes, int ranks) {
  return counts_of(options.collective, bytes / size_of(type), size_of(type), ranks);
}

size_t operation_bytes(const Counts& counts, DataType type) {
  return std::max(counts.send, counts.receive) * size_of(type);
}

}  // namespace

size_t buffer_bytes(const Options& options, int ranks) {
  size_t most = 0;
  for (const DataType type : options.types) {
    for (const uint64_t bytes : sizes_of(options)) {
      most = std::max(most, operation_bytes(counts_for(options, type, bytes, ranks), type));
    }
  }
  return most + kGuardBytes;
}

std::vector<Benchmark::Case> Benchmark::cases() const {
  const Options& options = *setup_.options;
  std::vector<std::optional<RedOp>> ops = {std::nullopt};
  if (reduces(options.collective)) ops.assign(options.ops.begin(), options.ops.end());
  std::vector<int> roots = {-1};
  if (options.collective == Collective::kBroadcast) {
    roots = {options.root};
    if (options.root < 0) {
      roots.resize(static_cast<size_t>(setup_.ranks));
      std::iota(roots.begin(), roots.end(), 0);
    }
  }
  std::vector<Case> cases;
  for (const DataType type : options.types) {
    for (const auto op : ops) {
      for (const int root : roots) {
        for (const uint64_t bytes : sizes_of(options)) cases.push_back({type, op, root, bytes});
      }
    }
  }
  return cases;
}

Result<void> Benchmark::run(const std::function<void(const Row&)>& show) {
  for (const Case& one : cases()) {
    if (ending_) break;
    auto row = run_row(one);
    if (!row) return fail(row.error());
    show(*row);
  }
  return {};
}

Result<Row> Benchmark::run_row(const Case& one) {
  const Options& options = *setup_.options;
  const Counts counts = counts_for(options, one.type, one.bytes, setup_.ranks);
  Row row;
  row.bytes = operation_bytes(counts, one.type);
  row.count = counts.param;
  row.type = one.type;
  row.op = one.op;
  row.root = one.root;
  const size_t bytes =
      is_point_to_point(options.collective) ? counts.param * size_of(one.type) : row.bytes;
  choose_path(&row, bytes);
  for (const bool in_place : {false, true}) {
    where_ = std::string(name_of(options.collective)) + " " + std::string(name_of(one.type)) + " " +
             (one.op ? std::string(name_of(*one.op)) + " " : "") + tools::format_bytes(row.bytes) +
             (in_place ? ", in place" : ", out of place");
    setup_.pulse->enter(where_);
    auto measured = measure(half_of(one, row, in_place));
    if (!measured) return fail(measured.error());
    (in_place ? row.in_place : row.out_of_place) = *measured;
  }
  return row;
}

// The protocol and the channels for so many bytes.
void Benchmark::choose_path(Row* row, size_t bytes) const {
  const Options& options = *setup_.options;
  if (options.algorithm == Algorithm::kCollNet) {
    row->protocol = Protocol::kSimple;  // the only one that NCCL has for CollNet
    row->channels = coll_channels_for(bytes, setup_.channels);
    return;
  }
  row->protocol = options.protocol.value_or(
      default_protocol(options.collective, bytes, setup_.ranks, setup_.channels, setup_.protocols));
  row->channels = is_point_to_point(options.collective)
                      ? setup_.channels
                      : channels_for(row->protocol, bytes, setup_.ranks, setup_.channels);
}

Benchmark::Half Benchmark::half_of(const Case& one, const Row& row, bool in_place) const {
  const Options& options = *setup_.options;
  Half half;
  half.counts = counts_for(options, one.type, one.bytes, setup_.ranks);
  half.stride = operation_bytes(half.counts, one.type);
  half.pattern.type = one.type;
  half.pattern.combine = one.op ? combine_of(*one.op) : Combine::kCopy;
  half.pattern.ranks = setup_.ranks;
  Shape& shape = half.shape;
  shape.collective = options.collective;
  shape.element_bytes = size_of(one.type);
  shape.count = half.counts.param;
  shape.root = std::max(0, one.root);
  shape.rank = setup_.rank;
  shape.ranks = setup_.ranks;
  shape.channels = row.channels;
  shape.protocol = row.protocol;
  shape.direct = options.direct;
  shape.in_place = in_place;
  return half;
}

// nccl-tests runs alltoall and sendrecv in place too, and shows N/A for what then comes out.
bool Benchmark::is_checked(const Half& half) const {
  return setup_.options->checks > 0 &&
         !(half.shape.in_place && is_point_to_point(half.shape.collective));
}

Job Benchmark::job_of(const Half& half, uint32_t operations, uint32_t repeats) const {
  const auto offset = [&](size_t elements) {
    return elements * static_cast<size_t>(setup_.rank) * half.shape.element_bytes;
  };
  Job job;
  job.shape = half.shape;
  job.type = half.pattern.type;
  job.op = half.pattern.combine == Combine::kCopy ? RedOp::kSum
                                                  : static_cast<RedOp>(half.pattern.combine);
  job.operations = operations;
  job.users.in_place = half.shape.in_place;
  job.users.stride = half.stride;
  job.users.repeats = repeats;
  job.users.input = setup_.send_buffer->data();
  job.users.output = setup_.receive_buffer->data();
  if (half.shape.in_place) {
    job.users.input = job.users.output + offset(half.counts.send_offset);
    job.users.output += offset(half.counts.receive_offset);
  }
  return job;
}

// How often an operation fits into the buffers: like nccl-tests, every repetition uses other
// memory, so that caches do not hold it.
uint32_t Benchmark::fitting(size_t stride) const {
  if (stride == 0) return 1;
  return static_cast<uint32_t>(
      std::clamp<size_t>((setup_.send_buffer->size() - kGuardBytes) / stride, 1, UINT32_MAX));
}

// Puts ones where checked runs have left other values.
void Benchmark::clean(DataType type, size_t used) {
  const size_t bytes = filled_ == type ? std::min(dirty_bytes_, used) : used;
  fill_ones(type, bytes, setup_.send_buffer->data());
  fill_ones(type, bytes, setup_.receive_buffer->data());
  filled_ = type;
  dirty_bytes_ = 0;
}

Result<void> Benchmark::check(const Half& half, Tally* tally) {
  uint32_t burst = std::min(kBurst, fitting(half.stride));
  while (burst > 1 && half.stride * burst > kBurstBytes) --burst;
  const size_t used = half.stride * burst;
  dirty_bytes_ = std::max(dirty_bytes_, used + kGuardBytes);
  Job job = job_of(half, burst, burst);
  job.is_checked = true;
  job.wild_tails = setup_.options->wild_tails;
  std::memset(setup_.receive_buffer->data(), kPoison, used + kGuardBytes);
  for (uint32_t i = 0; i < burst; ++i) {
    prepare_check(half, i, job.users.input_of(i));
  }
  if (auto done = setup_.communicator->run(&job); !done) return fail(done.error());
  const bool inject = setup_.options->inject_error && setup_.rank == setup_.ranks - 1;
  if (inject && half.stride > 0) job.users.output_of(0)[half.shape.element_bytes / 2] ^= 1;
  tally->wrong += verify_guard(used);
  for (uint32_t i = 0; i < burst; ++i) tally->wrong += verify(half, i, job.users.output_of(i));
  tally->checked += burst;
  repetition_ += burst;
  return {};
}

void Benchmark::prepare_check(const Half& half, uint32_t operation, char* input) {
  Pattern pattern = half.pattern;
  pattern.repetition = repetition_ + operation;
  const bool contributes =
      half.shape.collective != Collective::kBroadcast || setup_.rank == half.shape.root;
  if (contributes) fill(pattern, setup_.rank, 0, half.counts.send, input, setup_.pulse);
}

uint64_t Benchmark::verify(const Half& half, uint32_t operation, const char* output) {
  Pattern pattern = half.pattern;
  pattern.repetition = repetition_ + operation;
  const size_t count = half.counts.param;
  const auto rank = static_cast<size_t>(setup_.rank);
  const auto wrong_from = [&](int source, uint64_t first, const char* got) {
    return count_wrong(pattern, source, first, count, got, setup_.pulse);
  };
  switch (half.shape.collective) {
    case Collective::kAllReduce:
      return wrong_from(-1, 0, output);
    case Collective::kReduceScatter:
      return wrong_from(-1, rank * count, output);
    case Collective::kBroadcast:
      return wrong_from(half.shape.root, 0, output);
    case Collective::kSendRecv:
      return wrong_from((setup_.rank + setup_.ranks - 1) % setup_.ranks, 0, output);
    case Collective::kAllGather:
    case Collective::kAllToAll:
      break;
  }
  const uint64_t first = half.shape.collective == Collective::kAllToAll ? rank * count : 0;
  uint64_t wrong = 0;
  for (int source = 0; source < setup_.ranks; ++source) {
    const size_t block = static_cast<size_t>(source) * count * half.shape.element_bytes;
    wrong += wrong_from(source, first, output + block);
  }
  return wrong;
}

uint64_t Benchmark::verify_guard(size_t used) const {
  const char* guard = setup_.receive_buffer->data() + used;
  return static_cast<uint64_t>(std::count_if(
      guard, guard + kGuardBytes, [](char byte) { return byte != static_cast<char>(kPoison); }));
}

Result<Measurement> Benchmark::gather(const Half& half, const Tally& tally) {
  const double own_mean_us = static_cast<double>(tally.timed_ns) / 1e3 /
                             static_cast<double>(std::max<uint64_t>(1, tally.operations));
  const std::vector<uint64_t>& samples_ns = tally.samples.times_ns();
  auto all = setup_.member->exchange("results", {{"mean_us", own_mean_us},
                                                 {"samples_ns", samples_ns},
                                                 {"longest_ns", tally.longest_ns},
                                                 {"wrong", tally.wrong}});
  if (!all) return fail(all.error());
  Measurement result;
  result.operations = tally.operations;
  result.checked = tally.checked;
  std::vector<uint64_t> slowest(samples_ns.size(), 0);
  uint64_t all_wrong = 0;
  for (const nlohmann::json& part : *all) {
    // Every rank runs this same program, but what comes over a socket is looked at all the same.
    if (!part.is_object() || part["mean_us"].is_null() || !part["mean_us"].is_number() ||
        !part["samples_ns"].is_array() || part["samples_ns"].size() != slowest.size()) {
      return fail(make_error(Status::kRemote, 0, "a rank sent malformed results"));
    }
    const double mean = part["mean_us"].get<double>();
    result.mean_us += mean / setup_.ranks;
    result.slowest_us = std::max(result.slowest_us, mean);
    const auto longest_ns = static_cast<double>(number_in(part, "longest_ns", 0));
    result.max_us = std::max(result.max_us, longest_ns / 1e3);
    for (size_t i = 0; i < slowest.size(); ++i) {
      const nlohmann::json& sample = part["samples_ns"][i];
      if (sample.is_number_unsigned()) slowest[i] = std::max(slowest[i], sample.get<uint64_t>());
    }
    all_wrong += static_cast<uint64_t>(number_in(part, "wrong", 1));
  }
  if (tally.checked > 0) result.wrong = all_wrong;
  if (slowest.empty()) return result;
  std::sort(slowest.begin(), slowest.end());
  result.best_us = static_cast<double>(slowest.front()) / 1e3;
  result.median_us = static_cast<double>(slowest[slowest.size() / 2]) / 1e3;
  result.p99_us = static_cast<double>(slowest[slowest.size() * 99 / 100]) / 1e3;
  const auto bytes = static_cast<double>(
      algorithm_bytes(half.shape.collective, half.counts, half.shape.element_bytes, setup_.ranks));
  const double factor = bus_factor(half.shape.collective, setup_.ranks);
  if (result.mean_us > 0) result.algorithm_gb_s = bytes / result.mean_us / 1e3;
  result.bus_gb_s = result.algorithm_gb_s * factor;
  if (result.best_us > 0) result.best_bus_gb_s = bytes / result.best_us / 1e3 * factor;
  return result;
}

}  // namespace slime::perf
