// bench-fabric: the engine over two rails of one libfabric provider, the backend by itself, and a
// loop of bare fi_writemsg over the same provider. One thread has both ends, and the three take
// turns, so that whatever else the machine does disturbs all alike.
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/common/statistics.h"
#include "bench/fabric/bare_loop.h"
#include "bench/fabric/channel_loop.h"
#include "devices/devices.h"
#include "test/support/load/comm_load.h"
#include "transports/tcp/rail.h"

namespace slime::bench {
namespace {

constexpr int kExitUsage = 2, kExitSkipped = 77;

struct Options {
  std::string provider = "shm";
  int rounds = 9;
  uint64_t bytes = 64 << 20;  // of a round
  const char* json = nullptr;
};

double seconds_of(auto body) {
  const uint64_t start = SteadyClock::instance().now_ns();
  body();
  return static_cast<double>(SteadyClock::instance().now_ns() - start) / 1e9;
}

Rail& rail_of(Devices& end) { return *end.device(0)->rails().front(); }

// Messages of a work each, as many as the comms may have under way; works and writes as long as
// they are.
class Row {
 public:
  Row(Devices& from, Devices& to, const fabric::Symbols& symbols, const fabric::Nic& nic,
      uint32_t message, uint64_t bytes)
      : message_(message),
        count_(std::max<uint64_t>(bytes / message, 1)),
        load_(from, to, {.message_bytes = message}, [] { ::usleep(100); }),
        channel_loop_(rail_of(from), rail_of(to), message),
        loop_(symbols, nic, message) {}

  void round() {
    engine_.add(seconds_of([this] { run_engine(); }));
    backend_.add(seconds_of([this] { channel_loop_.stream(count_); }));
    bare_.add(seconds_of([this] { loop_.stream(message_, count_); }));
  }
  void report(nlohmann::json* rows) const {
    const double of_engine = bare_.median() / engine_.median();
    const double of_backend = bare_.median() / backend_.median();
    const double megabytes = static_cast<double>(count_ * message_) / 1e6;
    std::printf(
        "%4u KiB   bare %9.1f MB/s   backend %9.1f, ratio %.2f   engine %9.1f, ratio %.2f\n",
        message_ >> 10, megabytes / bare_.median(), megabytes / backend_.median(), of_backend,
        megabytes / engine_.median(), of_engine);
    rows->push_back({{"bytes", message_},
                     {"engine_s", to_json(engine_)},
                     {"backend_s", to_json(backend_)},
                     {"bare_s", to_json(bare_)},
                     {"engine_ratio", of_engine},
                     {"backend_ratio", of_backend}});
  }

 private:
  void run_engine() {
    for (uint64_t asked = 0, begun = 0, received = 0, sent = 0;
         received < count_ || sent < count_;) {
      while (asked < count_ && load_.receive()) ++asked;
      while (load_.test_receive()) ++received;
      while (begun < count_ && load_.send()) ++begun;
      while (load_.test_send()) ++sent;
    }
  }

  const uint32_t message_;
  const uint64_t count_;             // messages of a round
  Samples engine_, backend_, bare_;  // seconds of a round
  test::CommLoad load_;
  ChannelLoop channel_loop_;
  BareLoop loop_;
};

std::vector<fabric::Nic> find_nics(const Settings& settings, std::vector<std::string>* notes,
                                   std::unique_ptr<fabric::Opening>* opening) {
  const auto symbols = fabric::load_symbols();
  if (!symbols) {
    notes->push_back(symbols.error().what);
    return {};
  }
  auto side_rail = test::value_of(tcp::open_tcp_rails(settings, nullptr));
  *opening = std::make_unique<fabric::Opening>(
      test::value_of(fabric::Opening::prepare(**symbols, std::move(side_rail.front()), settings)));
  return fabric::find_nics(**opening, notes);
}

// A rail of the first NIC.
std::unique_ptr<Devices> open_end(const fabric::Opening& with, const fabric::Nic& nic) {
  std::vector<std::string> notes;
  std::vector<fabric::Nic> one;
  one.push_back({fabric::duplicate(*with.symbols, nic.info.get()), nic.traits, nic.caps});
  auto rails = fabric::open_nics(with, std::move(one), &notes);
  for (const std::string& note : notes) std::fprintf(stderr, "bench-fabric: %s\n", note.c_str());
  if (rails.empty()) std::exit(1);
  return Devices::of_rails(std::move(rails), with.settings, SteadyClock::instance());
}

int run(const Options& options) {
  Settings settings;
  settings.ifname = "lo";
  settings.fabric_provider = options.provider;
  std::vector<std::string> notes;
  std::unique_ptr<fabric::Opening> with;
  const std::vector<fabric::Nic> nics = find_nics(settings, &notes, &with);
  if (nics.empty()) {
    for (const std::string& note : notes) std::fprintf(stderr, "  %s\n", note.c_str());
    std::printf("SKIPPED: bench-fabric has no NIC of provider %s\n", options.provider.c_str());
    return kExitSkipped;
  }
  const auto from = open_end(*with, nics.front()), to = open_end(*with, nics.front());
  std::vector<std::unique_ptr<Row>> rows;
  for (const uint32_t message : {64U << 10, 1U << 20}) {
    rows.push_back(
        std::make_unique<Row>(*from, *to, *with->symbols, nics.front(), message, options.bytes));
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (const auto& row : rows) row->round();
    std::fprintf(stderr, "bench-fabric: round %d of %d\n", round + 1, options.rounds);
  }
  nlohmann::json records = nlohmann::json::array();
  for (const auto& row : rows) row->report(&records);
  const nlohmann::json all = {
      {"bench", "fabric"}, {"provider", options.provider}, {"rows", std::move(records)}};
  if (options.json != nullptr) std::ofstream(options.json) << all.dump(1) << '\n';
  return 0;
}

int parse_and_run(int argc, char** argv) {
  Options options;
  const option names[] = {{"provider", required_argument, nullptr, 'p'},
                          {"rounds", required_argument, nullptr, 'r'},
                          {"bytes", required_argument, nullptr, 'b'},
                          {"json", required_argument, nullptr, 'j'},
                          {nullptr, 0, nullptr, 0}};
  for (int option; (option = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    const auto number = [] { return std::max<uint64_t>(std::strtoull(optarg, nullptr, 10), 1); };
    switch (option) {
      case 'p':
        options.provider = optarg;
        break;
      case 'r':
        options.rounds = static_cast<int>(number());
        break;
      case 'b':
        options.bytes = number();
        break;
      case 'j':
        options.json = optarg;
        break;
      default:
        std::fprintf(stderr,
                     "usage: bench-fabric [--provider NAME] [--rounds N] [--bytes N] "
                     "[--json FILE]\n  exit code 0, 2 usage, 77 the provider has no NIC here\n");
        return kExitUsage;
    }
  }
  return run(options);
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) { return slime::bench::parse_and_run(argc, argv); }
