// Workers and a switch, or a root and leaves, over a network in virtual time that loses, duplicates
// and reorders. The workers are collnet/worker, the switches switch/core; the seed replays a run.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "collnet/worker/worker.h"
#include "switch/core/shard.h"

namespace slime {

struct NetworkOptions {
  uint64_t seed = 1;
  double loss = 0;
  double duplication = 0;
  double damage = 0;                       // of packets with numbers that a switch sends: one bit
  std::optional<sap::Op> damaged_op = {};  // only of those with this operation
  double raised_exponents = 0;  // of results for rank 0: their exponents are one too high
  uint64_t latency_ns = 10'000;
  uint64_t jitter_ns = 0;  // added at random: packets overtake each other
};

class Simulation {
 public:
  struct Options {
    std::vector<uint32_t> leaves = {};  // workers below each; one entry: a single switch
    uint32_t slots = 4;
    uint32_t lanes = 16;
    uint32_t shards = 1;
    uint32_t rails = 1;
    number::HalfBits half_bits = number::HalfBits::k32;
    uint32_t formats = sap::kKnownFormats;  // of the switches
    bool guesses = true;                    // of exponents, by the workers
    // One switch, which answers a query as a chip does: with a status, even of a complete round.
    bool queries_read_no_values = false;
    // The switches fold by this operation whatever a packet says, and answer each worker with its
    // own: as a chip, which does not compare the shapes of a round.
    std::optional<sap::Op> op_of_switches = {};
    uint64_t request_timeout_ns = 60'000'000'000;
    NetworkOptions network = {};
  };
  explicit Simulation(const Options& options);
  ~Simulation();

  uint32_t workers() const { return static_cast<uint32_t>(workers_.size()); }
  Worker& worker(uint32_t rank) { return *workers_[rank]; }
  net::Shard& shard(uint32_t at, uint32_t index) { return *switches_[at].shards[index]; }
  uint64_t now_ns() const { return now_ns_; }

  // Until `condition`, at most `limit_ns` of virtual time. False: the limit.
  template <typename Condition>
  bool run_until(Condition condition, uint64_t limit_ns = 3'600'000'000'000) {
    const uint64_t end = now_ns_ + limit_ns;
    while (!condition()) {
      if (now_ns_ > end) return false;
      step();
    }
    return true;
  }
  void repair() { network_.damage = network_.raised_exponents = 0; }
  // Somebody who knows all of the job but its token sends one packet to a switch, or to a worker:
  // of any type, about any slot and a round near the one it is in.
  void forge(std::mt19937_64& random);
  // From now on the switch is gone: what is sent to it is lost.
  void kill_switch() { switches_.clear(); }
  void kill_root() { switches_.back().shards.clear(); }
  static SocketAddress control_of(uint32_t leaf) { return address_of(leaf + 1, 28900); }
  // What the members of a job do between them: pause, tell each other their epochs, go on as
  // switches to each other.
  void move_to_ranks(uint8_t generation);
  // The same towards a switch that has just been started, with this job.
  void move_to_switch(uint16_t job, uint8_t generation);
  // What this worker sends there is lost from now on, and what is sent to it.
  void cut_rail(uint32_t rank, uint32_t rail);
  void mend_rails() { cut_.clear(); }
  uint64_t sent_on(uint32_t rail) const { return sent_on_[rail]; }  // by workers
  void stop_worker(uint32_t rank) { stopped_[rank] = true; }
  void resume_worker(uint32_t rank) { stopped_[rank] = false; }

 private:
  struct Flight {
    uint64_t at_ns;
    uint64_t order;
    SocketAddress from, to;
    std::vector<std::byte> bytes;
    bool operator>(const Flight& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order;
    }
  };
  struct Switch {
    SocketAddress address;
    std::vector<std::unique_ptr<net::Shard>> shards;
  };
  class Port;

  void step();
  void land(const Flight& flight);
  void damage(std::span<std::byte> bytes);
  std::vector<std::byte> as_status(std::vector<std::byte> result) const;
  std::vector<std::byte> with_raised_exponents(std::vector<std::byte> bytes,
                                               const SocketAddress& to);
  void send(const SocketAddress& from, const SocketAddress& to, std::vector<std::byte> bytes);
  void change_op(const SocketAddress& from, const SocketAddress& to, std::span<std::byte> bytes);
  static SocketAddress address_of(uint32_t node, uint32_t port);
  std::vector<uint32_t> pause();
  net::JobSpec spec() const;
  std::vector<SocketAddress> worker_addresses(uint32_t first, uint32_t count, uint32_t rails) const;
  void add_switch(const Options& options, uint32_t at, const net::JobSpec& spec);

  NetworkOptions network_;
  std::mt19937_64 random_;
  uint64_t now_ns_ = 1;
  uint64_t order_ = 0;
  uint64_t poll_ns_ = 0;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
  uint16_t job_ = 7;
  uint8_t generation_ = 3;
  uint32_t token_ = 0;
  std::vector<Switch> switches_;                    // the root is the last
  std::vector<std::unique_ptr<net::Shard>> ranks_;  // after move_to_ranks()
  Options options_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<bool> stopped_;
  std::vector<SocketAddress> cut_;
  std::array<uint64_t, sap::kMaxRails> sent_on_{};
  std::map<uint32_t, sap::Op> own_ops_;  // of workers, by their nodes; see op_of_switches
};

}  // namespace slime
