// The state of a SlotModel, and its packing into bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "test/model/rules.h"

namespace slime::model {

inline constexpr uint32_t kMaxWorkers = 3;
inline constexpr uint32_t kMaxLeaves = 2;
inline constexpr uint32_t kMaxLinks = kMaxWorkers + kMaxLeaves;

// A multiset of contributions: a byte each, the largest first. More of them than workers is wrong
// in any case, and is one value.
using Value = uint32_t;
inline constexpr Value kTooMany = ~Value{0};
Value contribution(uint32_t worker, uint32_t round);
Value fold(Value a, Value b);

struct Packet {
  uint8_t epoch = 0;
  uint8_t generation = 0;
  uint8_t round = 0;  // ghost: of the whole run, never wraps
  Value value = 0;
  auto operator<=>(const Packet&) const = default;
};
using Packets = std::vector<Packet>;

struct WorkerState {
  uint8_t round = 0;    // the oldest that is not accepted
  uint8_t retries = 0;  // left
  bool next = false;    // round + 1 is accepted already; only with a window of 2
};

struct SwitchState {
  Halves halves;
  std::array<Value, 2> values{};
  std::array<uint8_t, 2> rounds{};  // ghost
};

struct NetworkState {
  std::array<WorkerState, kMaxWorkers> workers;
  std::array<SwitchState, kMaxLeaves + 1> switches;  // the root is the last one in use
  std::array<Packets, kMaxLinks> up, down;           // per worker, then per leaf
  uint8_t generation = 0;
  uint8_t base = 0;  // round that has the first epoch
  bool violated = false;
};

struct Shape {
  uint32_t workers;
  uint32_t switches;
};
std::string pack(const NetworkState& state, const Shape& shape);
NetworkState unpack(const std::string& bytes, const Shape& shape);

}  // namespace slime::model
