// Writes vectors: a switch made of real shards, and a capture of everything that passes its port.
#pragma once

#include <functional>
#include <memory>
#include <random>

#include "switch/core/shard.h"
#include "test/vectors/vector.h"

namespace slime::vectors {

class Recorder final : private net::Outbox {
 public:
  explicit Recorder(Vector world);

  // One datagram to the shard of `slot`, or to any; 10 us after the last. Returns what came out.
  std::vector<test::CapturedPacket> deliver(const SocketAddress& from, std::vector<std::byte> bytes,
                                            uint32_t shard = 0);
  std::vector<test::CapturedPacket> deliver_for_slot(const SocketAddress& from,
                                                     std::vector<std::byte> bytes, uint16_t slot) {
    return deliver(from, std::move(bytes), slot % world_.shards);
  }
  // Another source may use the port too: trees of switches share one clock.
  void set_clock(uint64_t* time_us) { time_us_ = time_us; }
  // The job goes on in another generation.
  void fence(uint8_t generation, uint32_t token);
  net::JobTotals totals() const;  // over all shards
  const net::JobSpec& job() const { return world_.job; }
  const Vector& vector() const { return world_; }

 private:
  void send(const net::Outgoing& packet, std::span<const SocketAddress> to) override;

  Vector world_;
  std::vector<std::unique_ptr<net::Shard>> shards_;
  uint32_t shard_ = 0;  // that is at work
  uint64_t own_time_us_ = 1'000'000;
  uint64_t* time_us_ = &own_time_us_;
};

// What child `child` contributes: reproducible numbers, extremes among them.
struct Contribution {
  sap::Format format = sap::Format::kI32;
  sap::Op op = sap::Op::kSum;
  uint8_t flags = 0;
  uint16_t lanes = 8;
  uint64_t seed = 1;
  uint32_t first_rank = 0;  // of the switch's child 0
};
std::vector<std::byte> contribution(const net::JobSpec& job, uint8_t child, uint16_t slot,
                                    uint32_t epoch, const Contribution& what = {});
std::vector<std::byte> question(const net::JobSpec& job, uint8_t child, uint16_t slot,
                                uint32_t epoch);
// The header of a packet, changed.
std::vector<std::byte> changed(std::vector<std::byte> packet,
                               const std::function<void(sap::Header&)>& change);

// All vectors, from nothing but this code: the same bytes on every machine.
std::vector<Vector> generate();

// Of generate(): trees.
std::vector<Vector> generate_tree();
Vector world(const std::string& name, uint32_t children, uint32_t shards = 1);

}  // namespace slime::vectors
