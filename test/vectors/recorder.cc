#include "test/vectors/recorder.h"

#include <algorithm>
#include <cstdlib>

#include "test/support/check_oracle.h"

namespace slime::vectors {
namespace {

constexpr uint64_t kStepUs = 10;

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers everywhere.
uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// One word in four is where sums overflow and signs matter.
uint32_t word_of(uint64_t* state) {
  constexpr uint32_t kEdges[] = {0x7fffffff, 0x80000000, 0xffffffff, 0,
                                 0x7fff8000, 0x807f8180, 1,          0x00ff00ff};
  const uint64_t random = next_random(state);
  return random % 4 == 0 ? kEdges[random >> 8 & 7] : static_cast<uint32_t>(random >> 32);
}

}  // namespace

Recorder::Recorder(Vector world) : world_(std::move(world)) {
  for (uint32_t shard = 0; shard < world_.shards; ++shard) {
    shards_.push_back(std::make_unique<net::Shard>(shard, world_.shards));
    if (!shards_.back()->add_job(world_.job)) std::abort();
  }
}

std::vector<test::CapturedPacket> Recorder::deliver(const SocketAddress& from,
                                                    std::vector<std::byte> bytes, uint32_t shard) {
  shard_ = shard;
  SocketAddress to = world_.address;
  to.set_port(static_cast<uint16_t>(to.port() + shard));
  *time_us_ += kStepUs;
  world_.packets.push_back({*time_us_, from, to, std::move(bytes)});
  const size_t before = world_.packets.size();
  const auto datagram = world_.packets.back().payload;
  shards_[shard]->handle(datagram, from, *time_us_ * 1000, *this);
  return {world_.packets.begin() + static_cast<long>(before), world_.packets.end()};
}

void Recorder::fence(uint8_t generation, uint32_t token) {
  world_.job.generation = generation;
  world_.job.token = token;
  for (const auto& shard : shards_) shard->fence(world_.job.job, generation, token);
}

net::JobTotals Recorder::totals() const {
  net::JobTotals totals;
  for (const auto& shard : shards_) totals.add(*shard->counters_of(world_.job.job));
  return totals;
}

// A copy per destination, in the order of the children.
void Recorder::send(const net::Outgoing& packet, std::span<const SocketAddress> to) {
  std::vector<std::byte> bytes(packet.header.begin(), packet.header.end());
  bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
  SocketAddress from = world_.address;
  from.set_port(static_cast<uint16_t>(from.port() + shard_));
  for (const SocketAddress& destination : to) {
    world_.packets.push_back({++*time_us_, from, destination, bytes});
  }
}

std::vector<std::byte> contribution(const net::JobSpec& job, uint8_t child, uint16_t slot,
                                    uint32_t epoch, const Contribution& what) {
  const bool empty = (what.flags & sap::flag::kExponentsOnly) != 0;
  sap::Header header{.type = sap::Type::kContribution,
                     .format = what.format,
                     .op = what.op,
                     .flags = what.flags,
                     .job = job.job,
                     .generation = job.generation,
                     .child = child,
                     .token = job.token,
                     .slot = slot,
                     .lanes = empty ? uint16_t{0} : what.lanes,
                     .epoch = epoch,
                     .cookie = 0xc0de0000u | slot};
  uint64_t state = what.seed << 40 ^ uint64_t { child } << 32 ^ uint64_t { slot } << 20 ^ epoch;
  const uint64_t scalars = next_random(&state);
  header.exponents[0] = static_cast<int8_t>(scalars);
  header.exponents[1] = static_cast<int8_t>(scalars >> 8);
  header.special = static_cast<uint8_t>(1u << (scalars >> 16 & 7)) & 0x7f;
  std::vector<std::byte> bytes(sap::kHeaderBytes + 4 * size_t{header.lanes});
  for (size_t at = sap::kHeaderBytes; at < bytes.size(); at += 4) {
    sap::wire::put32(&bytes[at], word_of(&state));
  }
  const std::span<std::byte> payload = std::span(bytes).subspan(sap::kHeaderBytes);
  const size_t half = payload.size() / 2;
  if (sap::is_doubled(what.op)) std::copy_n(payload.begin(), half, payload.last(half).begin());
  header.check = sap::check_of(header, payload, what.first_rank + child);
  sap::encode(header, bytes.data());
  return bytes;
}

std::vector<std::byte> question(const net::JobSpec& job, uint8_t child, uint16_t slot,
                                uint32_t epoch) {
  const sap::Header header{.type = sap::Type::kQuery,
                           .job = job.job,
                           .generation = job.generation,
                           .child = child,
                           .token = job.token,
                           .slot = slot,
                           .epoch = epoch};
  std::vector<std::byte> bytes(sap::kHeaderBytes);
  sap::encode(header, bytes.data());
  return bytes;
}

std::vector<std::byte> changed(std::vector<std::byte> packet,
                               const std::function<void(sap::Header&)>& change) {
  sap::Header header;
  if (sap::decode(packet, &header) != sap::Fault::kNone) std::abort();
  change(header);
  sap::encode(header, packet.data());
  return packet;
}

Vector world(const std::string& name, uint32_t children, uint32_t shards) {
  Vector vector;
  vector.name = name;
  vector.address = *SocketAddress::parse("127.77.0.1:48880");
  vector.shards = shards;
  vector.job = {.job = 7,
                .generation = 3,
                .token = 0x5eed70c3,
                .slots = 4,
                .max_lanes = 8,
                .children = {},
                .parent = {}};
  for (uint32_t child = 0; child < children; ++child) {
    vector.job.children.push_back(
        *SocketAddress::parse("127.77.1." + std::to_string(child + 1) + ":4000"));
  }
  return vector;
}

}  // namespace slime::vectors
