// Allreduce of a float tensor over a switch, without NCCL. Every rank checks the sums. Rank 0
// prints the time; algbw is the tensor's bytes divided by the time of one operation.
//
//     example-all-reduce --switch 127.0.0.1:28900 --ranks 4               # threads of this process
//     example-all-reduce --switch S:28900 --ranks 4 --rank 1 --rendezvous H:5000   # one rank of 4
//
// Built from an installed libnet-slime:
//     g++ -std=c++17 all_reduce.cc -o all_reduce $(pkg-config --cflags --libs slime)
// Exit status: 0: all sums are right; 1: a wrong sum or an error; 2: wrong arguments.
#include <slime/aggregation.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace agg = slime::aggregation;

namespace {

constexpr size_t kMaxCount = size_t{1} << 28;
constexpr int kMaxRanks = 32;

struct Arguments {
  std::string switch_address;  // empty: NCCL_SLIME_SWITCH
  std::string rendezvous = "127.0.0.1:48950";
  int ranks = 2;
  int rank = -1;  // -1: all, as threads
  size_t count = 1 << 20;
  int iterations = 10;
  agg::Mode mode = agg::Mode::kNormal;
  bool json = false;
};

int usage() {
  std::fprintf(stderr,
               "usage: example-all-reduce [--switch HOST:PORT] [--ranks N] [--rank R]\n"
               "         [--rendezvous HOST:PORT] [--count ELEMENTS] [--iterations I]\n"
               "         [--mode normal|dummy|bypass|instant] [--json]\n"
               "Without --rank all ranks are threads of this process. --json: the statistics of "
               "each rank.\n");
  return 2;
}

bool parse_number(const char* text, long long least, long long most, long long* value) {
  char* end = nullptr;
  *value = std::strtoll(text, &end, 10);
  return end != text && *end == '\0' && *value >= least && *value <= most;
}

bool parse_mode(const std::string& text, agg::Mode* mode) {
  const char* const names[] = {"normal", "dummy", "bypass", "instant"};
  for (int i = 0; i < 4; ++i) {
    if (text == names[i]) return *mode = static_cast<agg::Mode>(i), true;
  }
  return false;
}

bool parse_one(const std::string& name, const char* value, Arguments* arguments) {
  long long number = 0;
  if (name == "--switch") return arguments->switch_address = value, true;
  if (name == "--rendezvous") return arguments->rendezvous = value, true;
  if (name == "--mode") return parse_mode(value, &arguments->mode);
  if (name == "--count") {
    return parse_number(value, 0, kMaxCount, &number) &&
           (arguments->count = static_cast<size_t>(number), true);
  }
  int* const target = name == "--ranks"        ? &arguments->ranks
                      : name == "--rank"       ? &arguments->rank
                      : name == "--iterations" ? &arguments->iterations
                                               : nullptr;
  const bool counted = name != "--rank";
  if (target == nullptr || !parse_number(value, counted, counted ? 1 << 20 : 31, &number)) {
    return false;
  }
  return *target = static_cast<int>(number), true;
}

bool parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--json") {
      arguments->json = true;
      continue;
    }
    if (i + 1 == argc || !parse_one(name, argv[++i], arguments)) return false;
  }
  return arguments->ranks <= kMaxRanks && arguments->rank < arguments->ranks;
}

int report(const agg::Outcome& outcome, int rank) {
  std::fprintf(stderr, "rank %d: %s\n", rank, outcome.what.c_str());
  return 1;
}

// Element i of rank r is small and whole, so the sum is exact: ranks * (i % 1000) + 0 + 1 + ...
float input_of(size_t i, int rank) {
  return static_cast<float>(i % 1000) + static_cast<float>(rank);
}

size_t count_wrong(const std::vector<float>& sums, const Arguments& arguments, int rank) {
  size_t wrong = 0;
  const int ranks = arguments.ranks;
  const int all_ranks = ranks * (ranks - 1) / 2;
  for (size_t i = 0; i < sums.size(); ++i) {
    float expected =
        static_cast<float>(ranks) * static_cast<float>(i % 1000) + static_cast<float>(all_ranks);
    if (arguments.mode == agg::Mode::kDummy) {
      expected = static_cast<float>(ranks) * input_of(i, rank);
    }
    wrong += sums[i] != expected;
  }
  return wrong;
}

int run_rank(const Arguments& arguments, int rank) {
  agg::Options options;
  options.rank = static_cast<uint32_t>(rank);
  options.ranks = static_cast<uint32_t>(arguments.ranks);
  if (arguments.ranks > 1) options.rendezvous = arguments.rendezvous;
  options.switch_address = arguments.switch_address;
  options.mode = arguments.mode;
  std::unique_ptr<agg::Context> context;
  if (auto opened = agg::Context::open(options, &context); !opened) return report(opened, rank);

  std::vector<float> input(arguments.count), sums(arguments.count);
  for (size_t i = 0; i < input.size(); ++i) input[i] = input_of(i, rank);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < arguments.iterations; ++i) {
    auto reduced = context->all_reduce({input.data(), sums.data(), input.size()});
    if (!reduced) return report(reduced, rank);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  const bool meaningful =
      arguments.mode == agg::Mode::kNormal || arguments.mode == agg::Mode::kDummy;
  const size_t wrong = meaningful ? count_wrong(sums, arguments, rank) : 0;
  const double seconds = took.count() / arguments.iterations;
  const size_t bytes = input.size() * sizeof(float);
  if (rank == 0 || arguments.rank >= 0 || wrong > 0) {
    std::printf("rank %d of %d: %zu bytes, %.1f us, algbw %.3f GB/s, %s%zu wrong\n", rank,
                arguments.ranks, bytes, seconds * 1e6, static_cast<double>(bytes) / seconds / 1e9,
                meaningful ? "" : "not checked, ", wrong);
  }
  if (arguments.json) std::printf("%s\n", context->statistics_json().c_str());
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, &arguments)) return usage();
  if (arguments.rank >= 0) return run_rank(arguments, arguments.rank);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(arguments.ranks));
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    threads.emplace_back([&, rank] { failures += run_rank(arguments, rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return failures == 0 ? 0 : 1;
}
