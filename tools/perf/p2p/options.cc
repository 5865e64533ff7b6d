#include "tools/perf/p2p/options.h"

#include <slime/types.h>

#include <algorithm>

#include "tools/common/bytes.h"
#include "tools/common/command_line.h"
#include "tools/perf/options.h"

namespace slime::perf::p2p {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 36;

constexpr const char* kFooter =
    "Two processes of this host, or two ranks that mpirun, srun or torchrun start, with an engine\n"
    "each. Rank 0 reads or writes memory of rank 1, which sleeps, adds to its counters (signal),\n"
    "sends to it, which receives, or tells it (notify), which fetches that. Each request moves\n"
    "--batch pieces of --size bytes, which do not touch each other; --concurrency requests are\n"
    "open. Messages have one piece, signals 8 bytes.\n"
    "--raw: by turns in the same run, the same over one plain connection of TCP or verbs, as the\n"
    "first rail has it, one thread a side, which spins 20 us and then sleeps.\n"
    "Exit code: 0 all right, 1 wrong bytes, 2 usage, 3 the engine, the network or a rank failed,\n"
    "130 interrupted.";

bool read_sizes(const std::string& text, std::vector<uint64_t>* sizes) {
  sizes->clear();
  for (const std::string& part : CLI::detail::split(text, ',')) {
    const auto bytes = tools::parse_bytes(part);
    if (!bytes || *bytes == 0 || *bytes > kMostBytes) {
      fprintf(stderr, "slime-perf: --size: '%s' is no size of 1 byte to 64 GiB\n",
              displayed(part).c_str());
      return false;
    }
    sizes->push_back(*bytes);
  }
  return true;
}

bool fits_operation(const Options& options) {
  const bool moves =
      options.operation == Operation::kRead || options.operation == Operation::kWrite;
  const char* const name = name_of(options.operation);
  if (!moves && (options.batch != 1 || options.immediate || options.plan)) {
    fprintf(stderr,
            "slime-perf: --batch, --plan and --immediate are of reads and writes, not of %s\n",
            name);
    return false;
  }
  if (options.raw && options.immediate && options.operation == Operation::kRead) {
    fprintf(stderr,
            "slime-perf: the plain loop tells nobody of its reads; leave --raw or "
            "--immediate out\n");
    return false;
  }
  const bool tells = options.operation == Operation::kNotify;
  if (tells && std::ranges::max(options.sizes) > SLIME_NOTIFICATION_BYTES) {
    fprintf(stderr, "slime-perf: a notification has 64 MiB at most; lower --size\n");
    return false;
  }
  const bool counts = options.operation == Operation::kSignal;
  if (counts && options.sizes != std::vector<uint64_t>{8}) {
    fprintf(stderr, "slime-perf: a signal has 8 bytes; leave --size out\n");
    return false;
  }
  return true;
}

}  // namespace

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::kRead:
      return "read";
    case Operation::kSend:
      return "send";
    case Operation::kSignal:
      return "signal";
    case Operation::kNotify:
      return "notify";
    default:
      return "write";
  }
}

std::variant<Options, int> parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("Moves bytes between two processes through libslime", "slime-perf p2p");
  app.footer(kFooter);
  std::string operation = "write", sizes;
  app.add_option("--op", operation, "read, write, send, signal or notify")
      ->check(CLI::IsMember({"read", "write", "send", "signal", "notify"}))
      ->capture_default_str();
  app.add_option("--size", sizes, "Bytes of a piece: a list (8,4K,64K,1M,16M)");
  app.add_option("--batch,--iovs", options.batch, "Pieces of a request")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--concurrency", options.concurrency, "Requests that are open at once")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "For each size")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  app.add_option("--turns", options.turns, "Parts of that time, by turns with --raw")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--raw", options.raw, "Also measure a plain loop");
  app.add_flag("--immediate", options.immediate,
               "Each request tells the target, by an immediate, when it has moved");
  app.add_flag("--plan,!--submit", options.plan,
               "Prepare each request's list once, and start it each time");
  app.add_flag("!--no-check", options.check, "Do not check the bytes");
  app.add_option("--ranks", options.ranks, "2: two processes of this host")
      ->check(CLI::IsMember({2}));
  app.add_option("--rendezvous", options.rendezvous, "HOST:PORT of rank 0");
  app.add_option("--timeout", options.timeout_s, "Seconds for the ranks to find each other")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_option("--json", options.json_path, "Write the result there; -: to standard output");
  if (const auto code = tools::parse(&app, argc, argv, kExitFailure)) return *code;
  for (const Operation one :
       {Operation::kRead, Operation::kSend, Operation::kSignal, Operation::kNotify}) {
    if (operation == name_of(one)) options.operation = one;
  }
  if (options.operation == Operation::kSignal) options.sizes = {8};
  if (!sizes.empty() && !read_sizes(sizes, &options.sizes)) return kExitUsage;
  if (!fits_operation(options)) return kExitUsage;
  for (const uint64_t size : options.sizes) {
    if (size <= kMostBytes / 2 / options.batch / options.concurrency) continue;
    fprintf(
        stderr,
        "slime-perf: %u requests of %u pieces of %llu bytes are more than 64 GiB; lower --size, "
        "--batch or --concurrency\n",
        options.concurrency, options.batch, static_cast<unsigned long long>(size));
    return kExitUsage;
  }
  return options;
}

std::string common_arguments(const Options& options) {
  std::string text = "p2p " + std::to_string(static_cast<int>(options.operation));
  for (const uint64_t size : options.sizes) text += " " + std::to_string(size);
  for (const double number : {double(options.batch), double(options.concurrency), options.seconds,
                              double(options.turns), double(options.raw), double(options.check),
                              double(options.immediate), double(options.plan)}) {
    text += " " + std::to_string(number);
  }
  return text;
}

}  // namespace slime::perf::p2p
