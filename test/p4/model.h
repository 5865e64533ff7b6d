// What a switch in P4 must answer: as the shards of the software switch do. That for Tofino differs
// in what docs/p4.md lists under "On Tofino".
#pragma once

#include <map>
#include <optional>

#include "test/vectors/recorder.h"

namespace slime::p4 {

using Packets = std::vector<test::CapturedPacket>;

class Model {
 public:
  explicit Model(vectors::Vector world) : shards_(std::move(world)) {}
  virtual ~Model() = default;
  const vectors::Vector& vector() const { return shards_.vector(); }
  const net::JobSpec& job() const { return shards_.job(); }
  void set_clock(uint64_t* time_us) { shards_.set_clock(time_us); }

  // The datagram comes to the port of that shard. Returns what is sent for it.
  virtual Packets deliver(const SocketAddress& from, const std::vector<std::byte>& bytes,
                          uint32_t shard) {
    return shards_.deliver(from, bytes, shard);
  }
  // Whether the answer to a packet is defined.
  virtual bool is_defined(const SocketAddress&, const std::vector<std::byte>&) const {
    return true;
  }
  virtual void fence(uint8_t generation, uint32_t token) { shards_.fence(generation, token); }
  virtual net::JobTotals totals() const { return shards_.totals(); }

 protected:
  vectors::Recorder shards_;
};

class ChipModel final : public Model {
 public:
  using Model::Model;

  Packets deliver(const SocketAddress& from, const std::vector<std::byte>& bytes,
                  uint32_t shard) override;
  // Not if format, operation or lanes of a packet are others than those of the round that it would
  // join: the chip does not compare them.
  bool is_defined(const SocketAddress& from, const std::vector<std::byte>& bytes) const override;
  void fence(uint8_t generation, uint32_t token) override;
  net::JobTotals totals() const override;

 private:
  struct Half {
    sap::Header opener;  // of the round
    uint32_t arrived = 0;
  };

  bool is_admitted(const SocketAddress& from, const sap::Header& header) const;
  Packets contribute(const SocketAddress& from, const std::vector<std::byte>& bytes,
                     const sap::Header& header);
  Packets tell(const SocketAddress& from, const sap::Header& header);
  const Half* half_of(const sap::Header& header) const;

  std::map<std::pair<uint16_t, uint32_t>, Half> halves_;  // by slot and parity
  uint64_t stale_ = 0, queries_ = 0;                      // that the shards have not seen
};

}  // namespace slime::p4
