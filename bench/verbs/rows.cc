#include "bench/verbs/rows.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "bench/common/statistics.h"
#include "bench/verbs/bare_loop.h"
#include "bench/verbs/counts.h"
#include "test/support/load/bare_link.h"
#include "test/support/load/comm_load.h"

namespace slime::bench {
namespace {

constexpr double kMostDoorbells = 0.07, kMostCompletions = 0.1, kMostPackets = 1.05;

void rest() { ::usleep(100); }

double seconds_of(auto body) {
  const uint64_t start = SteadyClock::instance().now_ns();
  body();
  return static_cast<double>(SteadyClock::instance().now_ns() - start) / 1e9;
}

struct Names {
  explicit Names(const Ports& ports)
      : from(ports.from.rail->nic().name()), to(ports.to.rail->nic().name()) {}
  Counts look() const { return bench::look(from, to); }

  const std::string from, to;  // devices
};

void print_retries(const Counts& engine, const Counts& bare) {
  std::printf("; retries %llu, bare %llu\n", static_cast<unsigned long long>(engine.retries),
              static_cast<unsigned long long>(bare.retries));
}

// A stream of works of one length; the loop sends as many.
class Stream : public Row {
 public:
  Stream(Ports& ports, uint32_t bytes, uint64_t works)
      : bytes_(bytes),
        works_(works),
        names_(ports),
        loop_(*ports.from.rail, *ports.to.rail, bytes) {}

  void round() final {
    const Counts start = names_.look();
    engine_.add(seconds_of([this] { run_engine(); }));
    const Counts turn = names_.look();
    bare_.add(seconds_of([this] { loop_.stream(bytes_, works_); }));
    engine_counts_ += turn - start;
    bare_counts_ += names_.look() - turn;
  }

 protected:
  virtual void run_engine() = 0;

  const uint32_t bytes_;   // of a work
  const uint64_t works_;   // of a round
  Samples engine_, bare_;  // seconds of a round
  Counts engine_counts_, bare_counts_;

 private:
  const Names names_;
  BareLoop loop_;
};

// Messages of a work each, as many as the comms may have under way.
class Messages final : public Stream {
 public:
  Messages(Ports& ports, uint32_t message, uint64_t bytes)
      : Stream(ports, message,
               std::max<uint64_t>(bytes / message / BareLoop::kChain, 1) * BareLoop::kChain),
        load_(*ports.from.devices, *ports.to.devices, {.message_bytes = message}, rest) {}

  bool report(nlohmann::json* rows) const override {
    const double ratio = bare_.median() / engine_.median();
    const double megabytes = static_cast<double>(works_ * bytes_) / 1e6;
    std::printf("messages of %4u KiB   %9.1f MB/s  bare %9.1f  ratio %.2f", bytes_ >> 10,
                megabytes / engine_.median(), megabytes / bare_.median(), ratio);
    print_retries(engine_counts_, bare_counts_);
    rows->push_back({{"row", "messages"},
                     {"message_bytes", bytes_},
                     {"engine_s", to_json(engine_)},
                     {"bare_s", to_json(bare_)},
                     {"bandwidth_ratio", ratio},
                     {"retries", engine_counts_.retries}});
    return true;
  }

 private:
  void run_engine() override {
    for (uint64_t asked = 0, begun = 0, received = 0, sent = 0;
         received < works_ || sent < works_;) {
      while (asked < works_ && load_.receive()) ++asked;
      while (load_.test_receive()) ++received;
      while (begun < works_ && load_.send()) ++begun;
      while (load_.test_send()) ++sent;
    }
  }

  test::CommLoad load_;
};

// Works without requests, so that the send queue is always full.
class FullQueue final : public Stream {
 public:
  FullQueue(Ports& ports, uint32_t work, uint64_t bytes)
      : Stream(ports, work,
               std::max<uint64_t>(bytes / work / BareLoop::kChain, 64) * BareLoop::kChain),
        link_(*ports.from.devices, *ports.to.devices, 1, work, rest) {}

  bool report(nlohmann::json* rows) const override {
    const auto works = static_cast<double>(works_ * engine_.count());
    const double doorbells = static_cast<double>(engine_counts_.doorbells) / works;
    const double completions = static_cast<double>(engine_counts_.completions) / works;
    const double packets = static_cast<double>(engine_counts_.packets) /
                           static_cast<double>(std::max<uint64_t>(bare_counts_.packets, 1));
    const double ratio = bare_.median() / engine_.median();
    std::printf(
        "full queue, %5u B    %9.1f us a work, bare %.1f, ratio %.2f; a work has %.3f "
        "doorbells, %.3f completions, %.3f of bare's packets",
        bytes_, engine_.median() * 1e6 / static_cast<double>(works_),
        bare_.median() * 1e6 / static_cast<double>(works_), ratio, doorbells, completions, packets);
    print_retries(engine_counts_, bare_counts_);
    rows->push_back({{"row", "full queue"},
                     {"work_bytes", bytes_},
                     {"engine_s", to_json(engine_)},
                     {"bare_s", to_json(bare_)},
                     {"rate_ratio", ratio},
                     {"doorbells_per_work", doorbells},
                     {"completions_per_work", completions},
                     {"packets_ratio", packets},
                     {"retries", engine_counts_.retries}});
    return doorbells <= kMostDoorbells && completions <= kMostCompletions &&
           (bare_counts_.packets == 0 || packets <= kMostPackets);
  }

 private:
  void run_engine() override {
    uint64_t submitted = 0;
    for (const uint64_t end = link_.done() + works_; link_.done() < end;) {
      while (submitted < works_ && link_.submit()) ++submitted;
      link_.progress();
      link_.drain_peer();
    }
  }

  test::BareLink link_;
};

class RoundTrip final : public Row {
 public:
  RoundTrip(Ports& ports, const Settings& settings, uint32_t message, uint64_t trips)
      : message_(message),
        trips_(trips),
        there_(*ports.from.devices, *ports.to.devices, options(message, settings), rest),
        back_(*ports.to.devices, *ports.from.devices, options(message, settings), rest),
        loop_(*ports.from.rail, *ports.to.rail, message) {}

  void round() override {
    engine_.add(half_trip_us([this] {
      for (uint64_t i = 0; i < trips_; ++i) {
        send_one(there_);
        send_one(back_);
      }
    }));
    bare_.add(half_trip_us([this] { loop_.ping_pong(message_, trips_); }));
  }
  double works_per_message() const {
    uint64_t works = 0;
    for (const test::CommLoad* load : {&there_, &back_}) {
      works += test::sum_counters(load->pair().send_channels).works;
      works += test::sum_counters(load->pair().recv_channels).works;
    }
    return static_cast<double>(works) / static_cast<double>(there_.sent() + back_.sent());
  }

  bool report(nlohmann::json* rows) const override {
    const double ratio = engine_.median() / bare_.median();
    std::printf("half round trip %5u B %9.1f us    bare %9.1f  ratio %.2f; %.2f works a message\n",
                message_, engine_.median(), bare_.median(), ratio, works_per_message());
    rows->push_back({{"row", "half round trip"},
                     {"message_bytes", message_},
                     {"engine_us", to_json(engine_)},
                     {"bare_us", to_json(bare_)},
                     {"latency_ratio", ratio},
                     {"works_per_message", works_per_message()}});
    return true;
  }

 private:
  static test::CommLoadOptions options(uint32_t message, const Settings& settings) {
    return {.eager_max = static_cast<uint32_t>(settings.eager_max), .message_bytes = message};
  }
  double half_trip_us(auto body) const {
    return seconds_of(body) * 1e6 / 2 / static_cast<double>(trips_);
  }
  // Until it has arrived. The sender's completion is not waited for, as the loop does not either.
  static void send_one(test::CommLoad& load) {
    load.receive();
    while (!load.send()) load.test_send();
    do {
      load.test_send();
    } while (!load.test_receive());
  }

  const uint32_t message_;
  const uint64_t trips_;
  test::CommLoad there_, back_;
  BareLoop loop_;
  Samples engine_, bare_;
};

}  // namespace

std::unique_ptr<Row> make_messages(Ports& ports, uint32_t message, uint64_t bytes) {
  return std::make_unique<Messages>(ports, message, bytes);
}
std::unique_ptr<Row> make_full_queue(Ports& ports, uint32_t work, uint64_t bytes) {
  return std::make_unique<FullQueue>(ports, work, bytes);
}
std::unique_ptr<Row> make_round_trip(Ports& ports, const Settings& settings, uint32_t message,
                                     uint64_t trips) {
  return std::make_unique<RoundTrip>(ports, settings, message, trips);
}

}  // namespace slime::bench
