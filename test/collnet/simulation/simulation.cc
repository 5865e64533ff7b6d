#include "test/collnet/simulation/simulation.h"

#include <cstdlib>
#include <string>

#include "test/support/check_oracle.h"

namespace slime {
namespace {

constexpr uint16_t kPortBase = 0xBEF0;  // of shard 0; the ports of the others follow
constexpr uint32_t kWorkerNode = 100;   // 10.0.0.100 and on; switches are 10.0.0.1 and on
constexpr uint32_t kWorkerPort = 4000;  // on rail 0; the ports after it are the other rails
constexpr uint64_t kPollNs = 500'000;

uint32_t node_of(const SocketAddress& address) {
  const std::string host = address.host();
  return static_cast<uint32_t>(std::strtoul(host.c_str() + host.rfind('.') + 1, nullptr, 10));
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
  token_ = static_cast<uint32_t>(random_());
  const bool tree = options.leaves.size() > 1;
  const auto leaves = static_cast<uint32_t>(options.leaves.size());
  const SocketAddress root = address_of(tree ? leaves + 1 : 1, kPortBase);
  uint32_t total = 0;
  for (uint32_t below : options.leaves) total += below;
  std::vector<SocketAddress> controls;
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    controls.insert(controls.end(), options.leaves[leaf], control_of(leaf));
  }
  uint32_t rank = 0;
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    net::JobSpec spec = this->spec();
    if (tree) spec.parent = net::Parent{root, static_cast<uint8_t>(leaf)};
    const SocketAddress above = address_of(leaf + 1, kPortBase);
    spec.children = worker_addresses(rank, options.leaves[leaf], options.rails);
    for (uint32_t child = 0; child < options.leaves[leaf]; ++child, ++rank) {
      const SocketAddress own = address_of(kWorkerNode + rank, kWorkerPort);
      ports_.push_back(std::make_unique<Port>(*this, own, above));
      const WorkerOptions worker{.route = {.job = job_,
                                           .generation = generation_,
                                           .token = token_,
                                           .shards = options.shards,
                                           .rails = options.rails},
                                 .child = static_cast<uint8_t>(child),
                                 .rank = rank,
                                 .contributors = total,
                                 .branches = branches_of(controls),
                                 .branch = leaf,
                                 .slots = options.slots,
                                 .lanes = options.lanes,
                                 .half_bits = options.half_bits,
                                 .formats = options.formats,
                                 .guesses = options.guesses,
                                 .round_trip = {},
                                 .request_timeout_ns = options.request_timeout_ns};
      workers_.push_back(std::move(*Worker::open(worker, *ports_.back())));
    }
    add_switch(options, leaf + 1, spec);
  }
  stopped_.resize(workers_.size());
  if (!tree) return;
  net::JobSpec spec = this->spec();
  spec.children_are_switches = true;
  spec.rails = 1;
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    spec.children.push_back(address_of(leaf + 1, kPortBase));
  }
  add_switch(options, leaves + 1, spec);
}

Simulation::~Simulation() = default;

net::JobSpec Simulation::spec() const {
  net::JobSpec spec;
  spec.job = job_;
  spec.generation = generation_;
  spec.token = token_;
  spec.slots = options_.slots;
  spec.max_lanes = options_.lanes;
  spec.formats = options_.formats;
  spec.rails = options_.rails;
  return spec;
}

void Simulation::add_switch(const Options& options, uint32_t at, const net::JobSpec& spec) {
  Switch fresh{.address = address_of(at, kPortBase), .shards = {}};
  for (uint32_t index = 0; index < options.shards; ++index) {
    fresh.shards.push_back(std::make_unique<net::Shard>(index, options.shards));
    if (!fresh.shards.back()->add_job(spec)) std::abort();
  }
  switches_.push_back(std::move(fresh));
}

void Simulation::change_op(const SocketAddress& from, const SocketAddress& to,
                           std::span<std::byte> bytes) {
  sap::Header header;
  if (!options_.op_of_switches || sap::decode(bytes, &header) != sap::Fault::kNone) return;
  if (header.type == sap::Type::kContribution) {
    own_ops_[node_of(from)] = header.op;
    header.op = *options_.op_of_switches;
  } else if (header.type == sap::Type::kResult || header.type == sap::Type::kResultAgain) {
    header.op = own_ops_[node_of(to)];
  }
  sap::encode(header, bytes.data());
}

void Simulation::send(const SocketAddress& from, const SocketAddress& to,
                      std::vector<std::byte> bytes) {
  change_op(from, to, bytes);
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
  sap::Header header;
  (void)sap::decode(bytes, &header);  // the switch's own
  if (network_.damaged_op && header.op != *network_.damaged_op) return;
  const size_t bit = random_() % (8 * (bytes.size() - sap::kHeaderBytes));
  bytes[sap::kHeaderBytes + bit / 8] ^= std::byte{1} << (bit % 8);
}

// Raises the exponents of some results on their way to rank 0.
std::vector<std::byte> Simulation::with_raised_exponents(std::vector<std::byte> bytes,
                                                         const SocketAddress& to) {
  std::uniform_real_distribution<double> chance;
  if (network_.raised_exponents == 0 || node_of(to) != kWorkerNode) return bytes;
  if (chance(random_) >= network_.raised_exponents) return bytes;
  sap::Header header;
  (void)sap::decode(bytes, &header);
  for (int8_t& exponent : header.exponents) exponent = static_cast<int8_t>(exponent + 1);
  sap::encode(header, bytes.data());
  return bytes;
}

void Simulation::forge(std::mt19937_64& random) {
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  const uint32_t victim = below(workers());
  const uint32_t slot = below(options_.slots);
  std::vector<uint32_t> epochs(options_.slots);
  workers_[victim]->epochs(epochs);
  sap::Header header{.type = static_cast<sap::Type>(1 + below(8)),
                     .op = below(4) ? sap::Op::kSum : sap::Op::kOr,
                     .flags = static_cast<uint8_t>(below(8) ? 0 : sap::flag::kFallback),
                     .job = job_,
                     .generation = generation_,
                     .child = static_cast<uint8_t>(below(sap::kMaxChildren)),
                     .token = token_ ^ (1 + below(UINT32_MAX)),
                     .slot = static_cast<uint16_t>(slot),
                     .lanes = static_cast<uint16_t>(8 * (1 + below(options_.lanes / 8))),
                     .epoch = epochs[slot] + below(3) + (below(16) ? 0 : 1u << below(31))};
  if (header.type == sap::Type::kQuery) header.lanes = 0;
  if (header.type == sap::Type::kStatus || header.type == sap::Type::kReject) header.lanes = 1;
  std::vector<std::byte> bytes(sap::kHeaderBytes + 4 * size_t{header.lanes});
  const std::span<const std::byte> payload = std::span(bytes).subspan(sap::kHeaderBytes);
  header.check = sap::check_of(header.format, payload, 0) +
                 sap::all_ranks(workers()).factors * sap::salt(header);
  sap::encode(header, bytes.data());
  const bool to_switch = below(2) != 0 && !switches_.empty();
  const uint32_t shard = slot % options_.shards;
  SocketAddress to = address_of(kWorkerNode + victim, kWorkerPort);
  if (to_switch) {
    const uint32_t at = below(static_cast<uint32_t>(switches_.size()));
    to = switches_[at].address;
    to.set_port(static_cast<uint16_t>(to.port() + shard));
  }
  const uint32_t rail = sap::rail_of(slot, options_.shards, options_.rails);
  const SocketAddress from = address_of(kWorkerNode + below(workers()), kWorkerPort + rail);
  flights_.push({now_ns_, order_++, from, to, std::move(bytes)});
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
  generation_ = generation;
  token_ = static_cast<uint32_t>(random_());
  net::JobSpec spec = this->spec();
  spec.rails = 1;
  spec.children = worker_addresses(0, workers(), 1);
  ranks_.clear();
  for (uint32_t rank = 0; rank < workers(); ++rank) {
    ranks_.push_back(std::make_unique<net::Shard>(rank, workers()));
    if (!ranks_.back()->add_job(spec)) std::abort();
    workers_[rank]->resume(
        {.job = job_, .generation = generation_, .token = token_, .direct = true}, epochs, now_ns_);
  }
}

void Simulation::move_to_switch(uint16_t job, uint8_t generation) {
  const std::vector<uint32_t> epochs = pause();
  job_ = job;
  generation_ = generation;
  token_ = static_cast<uint32_t>(random_());
  net::JobSpec spec = this->spec();
  spec.children = worker_addresses(0, workers(), options_.rails);
  switches_.clear();
  add_switch(options_, 1, spec);
  ranks_.clear();
  for (auto& worker : workers_) {
    worker->resume({.job = job_,
                    .generation = generation_,
                    .token = token_,
                    .shards = options_.shards,
                    .rails = options_.rails},
                   epochs, now_ns_);
  }
}

std::vector<std::byte> Simulation::as_status(std::vector<std::byte> result) const {
  sap::Header header;
  (void)sap::decode(result, &header);
  header.type = sap::Type::kStatus;
  header.flags = 0;
  header.lanes = 1;
  result.resize(sap::kHeaderBytes + 4);
  sap::encode(header, result.data());
  sap::wire::put32(result.data() + sap::kHeaderBytes, 0xffff'ffffU >> (32 - workers()));
  return result;
}

void Simulation::land(const Flight& flight) {
  const uint32_t node = node_of(flight.to);
  const bool for_shard =
      flight.bytes.size() > 3 &&
      (flight.bytes[sap::at::kType] == std::byte{static_cast<uint8_t>(sap::Type::kContribution)} ||
       (flight.bytes[sap::at::kType] == std::byte{static_cast<uint8_t>(sap::Type::kQuery)} &&
        (flight.bytes[sap::at::kFlags] & std::byte{sap::flag::kFallback}) == std::byte{0}));
  if (node >= kWorkerNode) {
    const uint32_t rank = node - kWorkerNode;
    if (stopped_[rank]) return;
    if (!for_shard) return deliver(*workers_[rank], flight.bytes, now_ns_);
    if (ranks_.empty()) return;
  } else if (switches_.empty()) {
    return;
  }
  struct Answers final : net::Outbox {
    void send(const net::Outgoing& packet, std::span<const SocketAddress> to) override {
      std::vector<std::byte> bytes(packet.header.begin(), packet.header.end());
      bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
      simulation->damage(bytes);
      if (is_query && simulation->options_.queries_read_no_values &&
          bytes[sap::at::kType] == std::byte{static_cast<uint8_t>(sap::Type::kResultAgain)}) {
        bytes = simulation->as_status(std::move(bytes));
      }
      for (const SocketAddress& one : to) {
        // Below a switch that is a switch's own port, above it that of the slot's shard.
        SocketAddress target = one;
        if (node_of(one) < kWorkerNode && node_of(own) < kWorkerNode) target.set_port(own.port());
        simulation->send(source, target, simulation->with_raised_exponents(bytes, target));
      }
    }
    Simulation* simulation = nullptr;
    SocketAddress own, source;
    bool is_query = false;
  } answers;
  answers.simulation = this;
  answers.own = flight.to;
  answers.is_query =
      flight.bytes.size() > sap::at::kType &&
      flight.bytes[sap::at::kType] == std::byte{static_cast<uint8_t>(sap::Type::kQuery)};
  answers.source = flight.to;
  if (node >= kWorkerNode) {
    ranks_[node - kWorkerNode]->handle(flight.bytes, flight.from, now_ns_, answers);
    return;
  }
  Switch& target = switches_[node - 1];
  answers.source = target.address;  // one address, whatever the shard
  if (target.shards.empty()) return;
  const uint32_t index = flight.to.port() - kPortBase;
  target.shards[index]->handle(flight.bytes, flight.from, now_ns_, answers);
}

}  // namespace slime
