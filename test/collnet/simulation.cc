#include "test/collnet/simulation.h"

#include <cstdlib>
#include <string>

namespace slime {
namespace {

constexpr uint32_t kWorkerNode = 100;   // 10.0.0.100 and on; switches are 10.0.0.1 and on
constexpr uint32_t kWorkerPort = 4000;  // on rail 0; the ports after it are the other rails
constexpr uint64_t kPollNs = 500'000;

uint32_t node_of(const SocketAddress& address) {
  const std::string host = address.host();
  return static_cast<uint32_t>(std::strtoul(host.c_str() + host.rfind('.') + 1, nullptr, 10));
}

net::JobSpec spec_of(const Simulation::Options& options) {
  net::JobSpec spec;
  spec.job = 7;
  spec.generation = 3;
  spec.slots = options.slots;
  spec.max_lanes = options.lanes;
  spec.rails = options.rails;
  return spec;
}

}  // namespace

class Simulation::Port final : public Datagrams {
 public:
  Port(Simulation& simulation, SocketAddress own, SocketAddress peer)
      : simulation_(simulation), own_(own), peer_(peer) {}
  void send(const Destination& destination, std::span<const std::byte> datagram) override {
    SocketAddress to = peer_;
    to.set_port(static_cast<uint16_t>(to.port() + destination.index));
    if (destination.kind == Destination::Kind::kRank) {
      to = address_of(kWorkerNode + destination.index, kWorkerPort);
    }
    SocketAddress own = own_;
    own.set_port(static_cast<uint16_t>(own.port() + destination.rail));
    ++simulation_.sent_on_[destination.rail];
    simulation_.send(own, to, {datagram.begin(), datagram.end()});
  }

 private:
  Simulation& simulation_;
  const SocketAddress own_, peer_;
};

SocketAddress Simulation::address_of(uint32_t node, uint32_t port) {
  return *SocketAddress::parse("10.0.0." + std::to_string(node) + ":" + std::to_string(port));
}

Simulation::Simulation(const Options& options)
    : network_(options.network), random_(options.network.seed), options_(options) {
  const bool tree = options.leaves.size() > 1;
  const auto leaves = static_cast<uint32_t>(options.leaves.size());
  const SocketAddress root = address_of(tree ? leaves + 1 : 1, sap::kPortBase);
  uint32_t total = 0;
  for (uint32_t below : options.leaves) total += below;
  std::vector<SocketAddress> controls;
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    controls.insert(controls.end(), options.leaves[leaf], control_of(leaf));
  }
  uint32_t rank = 0;
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    net::JobSpec spec = spec_of(options);
    if (tree) spec.parent = net::Parent{root, static_cast<uint8_t>(leaf)};
    const SocketAddress above = address_of(leaf + 1, sap::kPortBase);
    spec.children = worker_addresses(rank, options.leaves[leaf], options.rails);
    for (uint32_t child = 0; child < options.leaves[leaf]; ++child, ++rank) {
      const SocketAddress own = address_of(kWorkerNode + rank, kWorkerPort);
      ports_.push_back(std::make_unique<Port>(*this, own, above));
      const WorkerOptions worker{.job = 7,
                                 .generation = 3,
                                 .child = static_cast<uint8_t>(child),
                                 .rank = rank,
                                 .contributors = total,
                                 .branches = branches_of(controls),
                                 .branch = leaf,
                                 .slots = options.slots,
                                 .lanes = options.lanes,
                                 .half_bits = options.half_bits,
                                 .shards = options.shards,
                                 .rails = options.rails,
                                 .round_trip = {},
                                 .dead_ns = options.dead_ns};
      workers_.push_back(std::move(*Worker::open(worker, *ports_.back())));
    }
    add_switch(options, leaf + 1, spec);
  }
  stopped_.resize(workers_.size());
  if (!tree) return;
  net::JobSpec spec = spec_of(options);
  spec.children_are_switches = true;
  spec.rails = 1;
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    spec.children.push_back(address_of(leaf + 1, sap::kPortBase));
  }
  add_switch(options, leaves + 1, spec);
}

Simulation::~Simulation() = default;

void Simulation::add_switch(const Options& options, uint32_t at, const net::JobSpec& spec) {
  Switch fresh{.address = address_of(at, sap::kPortBase), .shards = {}};
  for (uint32_t index = 0; index < options.shards; ++index) {
    fresh.shards.push_back(std::make_unique<net::Shard>(index, options.shards));
    if (!fresh.shards.back()->add_job(spec)) std::abort();
  }
  switches_.push_back(std::move(fresh));
}

void Simulation::send(const SocketAddress& from, const SocketAddress& to,
                      const std::vector<std::byte>& bytes) {
  std::uniform_real_distribution<double> chance;
  for (const SocketAddress& lost : cut_) {
    if (lost == from || lost == to) return;
  }
  const int copies = 1 + (chance(random_) < network_.duplication);
  for (int copy = 0; copy < copies; ++copy) {
    if (chance(random_) < network_.loss) continue;
    const uint64_t jitter = network_.jitter_ns ? random_() % network_.jitter_ns : 0;
    flights_.push({now_ns_ + network_.latency_ns + jitter, order_++, from, to, bytes});
  }
}

// The network's own checksum would find it; that of a switch whose memory has a fault is right.
void Simulation::damage(std::span<std::byte> bytes) {
  if (network_.damage == 0 || bytes.size() <= sap::kHeaderBytes) return;
  std::uniform_real_distribution<double> chance;
  if (chance(random_) >= network_.damage) return;
  if (network_.damaged_op) {
    sap::Header header;
    (void)sap::decode(bytes, &header);  // the switch's own
    if (header.op == *network_.damaged_op) lose_bit(bytes.subspan(sap::kHeaderBytes));
    return;
  }
  const size_t bit = random_() % (8 * (bytes.size() - sap::kHeaderBytes));
  bytes[sap::kHeaderBytes + bit / 8] ^= std::byte{1} << (bit % 8);
}

// The next that is set, from any byte on.
void Simulation::lose_bit(std::span<std::byte> payload) {
  const size_t first = random_() % payload.size();
  for (size_t i = 0; i < payload.size(); ++i) {
    std::byte& byte = payload[(first + i) % payload.size()];
    if (byte == std::byte{0}) continue;
    byte = static_cast<std::byte>(std::to_integer<unsigned>(byte) &
                                  (std::to_integer<unsigned>(byte) - 1));
    return;
  }
}

void Simulation::inject(uint32_t at, uint32_t shard, std::span<const std::byte> datagram,
                        uint32_t from_rank) {
  SocketAddress to = switches_[at].address;
  to.set_port(static_cast<uint16_t>(to.port() + shard));
  flights_.push({now_ns_,
                 order_++,
                 address_of(kWorkerNode + from_rank, kWorkerPort),
                 to,
                 {datagram.begin(), datagram.end()}});
}

void Simulation::step() {
  if (!flights_.empty() && flights_.top().at_ns <= poll_ns_) {
    const Flight flight = flights_.top();
    flights_.pop();
    now_ns_ = std::max(now_ns_, flight.at_ns);
    return land(flight);
  }
  now_ns_ = std::max(now_ns_, poll_ns_);
  poll_ns_ = now_ns_ + kPollNs;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (!stopped_[rank]) workers_[rank]->poll(now_ns_);
  }
}

std::vector<uint32_t> Simulation::pause() {
  std::vector<uint32_t> epochs(size_t{options_.slots} * workers());
  for (uint32_t rank = 0; rank < workers(); ++rank) {
    workers_[rank]->pause();
    workers_[rank]->epochs(
        std::span(epochs).subspan(size_t{rank} * options_.slots, options_.slots));
  }
  return epochs;
}

std::vector<SocketAddress> Simulation::worker_addresses(uint32_t first, uint32_t count,
                                                        uint32_t rails) const {
  std::vector<SocketAddress> addresses;
  for (uint32_t rail = 0; rail < rails; ++rail) {
    for (uint32_t rank = first; rank < first + count; ++rank) {
      addresses.push_back(address_of(kWorkerNode + rank, kWorkerPort + rail));
    }
  }
  return addresses;
}

void Simulation::cut_rail(uint32_t rank, uint32_t rail) {
  cut_.push_back(address_of(kWorkerNode + rank, kWorkerPort + rail));
}

void Simulation::move_to_ranks(uint8_t generation) {
  const std::vector<uint32_t> epochs = pause();
  net::JobSpec spec = spec_of(options_);
  spec.generation = generation;
  spec.rails = 1;
  spec.children = worker_addresses(0, workers(), 1);
  ranks_.clear();
  for (uint32_t rank = 0; rank < workers(); ++rank) {
    ranks_.push_back(std::make_unique<net::Shard>(rank, workers()));
    if (!ranks_.back()->add_job(spec)) std::abort();
    workers_[rank]->resume(
        {.job = spec.job, .generation = generation, .direct = true, .epochs = epochs}, now_ns_);
  }
}

void Simulation::move_to_switch(uint16_t job, uint8_t generation) {
  const std::vector<uint32_t> epochs = pause();
  net::JobSpec spec = spec_of(options_);
  spec.job = job;
  spec.generation = generation;
  spec.children = worker_addresses(0, workers(), options_.rails);
  switches_.clear();
  add_switch(options_, 1, spec);
  ranks_.clear();
  for (auto& worker : workers_) {
    worker->resume({.job = job,
                    .generation = generation,
                    .shards = options_.shards,
                    .rails = options_.rails,
                    .epochs = epochs},
                   now_ns_);
  }
}

void Simulation::land(const Flight& flight) {
  const uint32_t node = node_of(flight.to);
  const bool for_shard =
      flight.bytes.size() > 3 &&
      (flight.bytes[1] == std::byte{static_cast<uint8_t>(sap::Type::kContribution)} ||
       (flight.bytes[1] == std::byte{static_cast<uint8_t>(sap::Type::kQuery)} &&
        (flight.bytes[3] & std::byte{sap::flag::kFallback}) == std::byte{0}));
  if (node >= kWorkerNode) {
    const uint32_t rank = node - kWorkerNode;
    if (stopped_[rank]) return;
    if (!for_shard) return workers_[rank]->on_datagram(flight.bytes, now_ns_);
    if (ranks_.empty()) return;
  } else if (switches_.empty()) {
    return;
  }
  struct Answers final : net::Outbox {
    void send(const net::Outgoing& packet, std::span<const SocketAddress> to) override {
      std::vector<std::byte> bytes(packet.header.begin(), packet.header.end());
      bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
      simulation->damage(bytes);
      for (const SocketAddress& one : to) {
        // Below a switch that is a switch's own port, above it that of the slot's shard.
        SocketAddress target = one;
        if (node_of(one) < kWorkerNode && node_of(own) < kWorkerNode) target.set_port(own.port());
        simulation->send(source, target, bytes);
      }
    }
    Simulation* simulation = nullptr;
    SocketAddress own, source;
  } answers;
  answers.simulation = this;
  answers.own = flight.to;
  answers.source = flight.to;
  if (node >= kWorkerNode) {
    ranks_[node - kWorkerNode]->handle(flight.bytes, flight.from, now_ns_, answers);
    return;
  }
  Switch& target = switches_[node - 1];
  answers.source = target.address;  // one address, whatever the shard
  if (target.shards.empty()) return;
  const uint32_t index = flight.to.port() - sap::kPortBase;
  target.shards[index]->handle(flight.bytes, flight.from, now_ns_, answers);
}

}  // namespace slime
