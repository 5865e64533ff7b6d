// Random traces of packets for one switch: rounds that go forward with loss, duplicates and
// reordering, and packets that no worker sends. The seed decides everything.
#pragma once

#include <optional>
#include <random>

#include "test/vectors/recorder.h"

namespace slime::p4 {

class Trace {
 public:
  struct Packet {
    SocketAddress from;
    std::vector<std::byte> bytes;
    uint32_t shard;
  };

  // kSoftware: what any switch in software can have: a root of workers, a leaf, or a root of
  // switches. kChip: what that for Tofino can have: no leaf, one rail and shard, formats of words.
  enum class Kind : uint8_t { kSoftware, kChip };

  explicit Trace(uint64_t seed, Kind kind = Kind::kSoftware);
  const vectors::Vector& world() const { return world_; }
  Packet next();
  // From here on packets are mostly of another generation.
  std::pair<uint8_t, uint32_t> fence();

 private:
  bool one_in(uint32_t n) { return random_() % n == 0; }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::vector<std::byte> valid(uint16_t slot, uint32_t epoch, uint8_t child, bool* above);
  void spoil(Packet* packet);

  const Kind kind_;
  std::mt19937_64 random_;
  vectors::Vector world_;
  std::optional<std::pair<uint8_t, uint32_t>> former_;  // generation and token before the fence
  std::vector<uint32_t> epochs_;                        // of each slot, about where its rounds are
};

}  // namespace slime::p4
