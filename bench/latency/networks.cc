#include "bench/latency/networks.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bench/common/statistics.h"
#include "bench/common/two_processes.h"
#include "bench/latency/modes.h"

namespace slime::bench {
namespace {

constexpr unsigned kLimitS = 300;
constexpr size_t kNetworks = 2;
constexpr const char* kNames[kNetworks] = {"calls of NCCL's Socket", "plugin"};
constexpr unsigned kMostTrips = 1000;
constexpr size_t kBytesPerRound = 32 << 20;  // each way; then the round ends

struct Row {
  std::vector<double> median_us;  // half round trips of each round
  std::vector<double> best_us;
  std::vector<double> cpu_ns_per_byte;  // of both processes
};
using Rows = std::array<Row, kNetworks>;

struct Shared {
  Barrier barrier;
  std::atomic<uint64_t> peer_cpu_ns{0};
};

unsigned trips(size_t bytes) {
  return static_cast<unsigned>(std::clamp<size_t>(kBytesPerRound / bytes, 2, kMostTrips));
}

uint64_t cpu_ns() {
  rusage used{};
  (void)getrusage(RUSAGE_SELF, &used);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(time.tv_usec) * 1000;
  };
  return ns(used.ru_utime) + ns(used.ru_stime);
}

bool enter(const std::string& netns) {
  const int fd = open(netns.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && setns(fd, CLONE_NEWNET) == 0) return close(fd) == 0;
  std::fprintf(stderr, "bench-latency: cannot enter the network namespace %s: %s\n", netns.c_str(),
               std::strerror(errno));
  return false;
}

// One round of one network. Rank 0 keeps what it took.
bool run_round(int rank, PingPong* end, size_t bytes, Shared* shared, Row* row) {
  std::vector<uint64_t> ns;
  ns.reserve(kMostTrips);
  shared->barrier.wait();
  const uint64_t before = cpu_ns();
  if (!end->run(trips(bytes), &ns)) return false;
  const uint64_t used = cpu_ns() - before;
  if (rank == 1) shared->peer_cpu_ns = used;
  shared->barrier.wait();
  if (rank == 1 || row == nullptr) return true;
  Samples samples;
  for (const uint64_t one : ns) samples.add(static_cast<double>(one) / 2000);
  row->median_us.push_back(samples.median());
  row->best_us.push_back(samples.min());
  row->cpu_ns_per_byte.push_back(static_cast<double>(used + shared->peer_cpu_ns) /
                                 (2.0 * trips(bytes) * static_cast<double>(bytes)));
  return true;
}

bool run_size(int rank, size_t bytes, const NetworksOptions& options, const nccl::NetV8* plugin,
              const std::array<int, kNetworks>& handle_fds, Shared* shared, Rows* rows) {
  const std::array<std::unique_ptr<PingPong>, kNetworks> ends = {
      make_network(rank, handle_fds[0], socket_calls(), bytes),
      make_network(rank, handle_fds[1], plugin, bytes)};
  if (std::any_of(ends.begin(), ends.end(), [](const auto& end) { return end == nullptr; })) {
    return false;
  }
  for (unsigned round = 0; round <= options.rounds; ++round) {
    for (size_t i = 0; i < kNetworks; ++i) {
      // Round 0 warms up.
      Row* row = round == 0 ? nullptr : &(*rows)[i];
      if (!run_round(rank, ends[i].get(), bytes, shared, row)) return false;
    }
  }
  shared->barrier.wait();  // nobody closes while the other still polls
  return true;
}

void print(size_t bytes, const Rows& rows) {
  for (size_t i = 0; i < kNetworks; ++i) {
    const auto median = [](const std::vector<double>& values) {
      Samples samples;
      for (const double value : values) samples.add(value);
      return samples.median();
    };
    std::printf("%-24s %10zu B %10.2f us %10.3f ns of CPU per byte\n", kNames[i], bytes,
                median(rows[i].median_us), median(rows[i].cpu_ns_per_byte));
  }
}

nlohmann::json to_json(size_t bytes, const Rows& rows) {
  nlohmann::json networks = nlohmann::json::array();
  for (size_t i = 0; i < kNetworks; ++i) {
    networks.push_back({{"network", kNames[i]},
                        {"median_us", rows[i].median_us},
                        {"best_us", rows[i].best_us},
                        {"cpu_ns_per_byte", rows[i].cpu_ns_per_byte}});
  }
  return {{"size", bytes}, {"networks", std::move(networks)}};
}

}  // namespace

int compare_networks(const NetworksOptions& options) {
  const std::array<SocketPair, kNetworks> handles = {make_loopback_pair(), make_loopback_pair()};
  auto* shared = make_shared_memory<Shared>();
  if (shared == nullptr) return 1;
  std::vector<Rows> rows(options.sizes.size());
  const bool ok = run_two_processes(kLimitS, [&](int rank) {
    if (rank == 1 && !options.peer_netns.empty() && !enter(options.peer_netns)) return false;
    const auto own = static_cast<size_t>(rank);
    const nccl::NetV8* plugin = load_plugin(options.plugin);
    for (size_t i = 0; i < options.sizes.size(); ++i) {
      if (!run_size(rank, options.sizes[i], options, plugin,
                    {handles[0].ends[own], handles[1].ends[own]}, shared, &rows[i])) {
        return false;
      }
    }
    return true;
  });
  if (!ok) return 1;
  nlohmann::json records = nlohmann::json::array();
  for (size_t i = 0; i < rows.size(); ++i) {
    print(options.sizes[i], rows[i]);
    records.push_back(to_json(options.sizes[i], rows[i]));
  }
  if (options.json) {
    std::ofstream(options.json)
        << nlohmann::json{{"bench", "networks"}, {"rows", std::move(records)}}.dump(1) << '\n';
  }
  return 0;
}

}  // namespace slime::bench
