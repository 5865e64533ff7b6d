// What P4Switch writes to a device, in words that all runtime interfaces have. Names are those of
// the compiled P4 program, controls and tables from the outermost on; they last as long as the
// process.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace slime::net {

// A part of a table's key, or a parameter of an action, as the P4 program declares it.
struct TableField {
  static constexpr uint64_t kExact = ~uint64_t{0};

  std::string_view name;
  uint32_t bits = 0;  // up to 64
  uint64_t value = 0;
  uint64_t mask = kExact;  // of a key: the bits that count
  bool operator==(const TableField&) const = default;
};

struct TableAction {
  std::string_view name;
  std::vector<TableField> data;
  bool operator==(const TableAction&) const = default;
};

// A table has at most one entry with a key. No two ternary keys of a table match the same packet,
// so entries have no priority.
struct TableEntry {
  std::string_view table;
  std::vector<TableField> key;
  TableAction action;
};

inline bool same_key(const TableEntry& a, const TableEntry& b) {
  return a.table == b.table && a.key == b.key;
}

// Elements first to end - 1 of an array of registers.
struct RegisterRange {
  std::string_view array;
  uint32_t first = 0, end = 0;
};

// One counter of an array. It counts packets.
struct CounterCell {
  std::string_view array;
  uint32_t index = 0;
};

// A copy of a packet: the program reads the number, and the copy leaves at the port.
struct Replica {
  uint16_t number = 0;
  uint16_t port = 0;
  bool operator==(const Replica&) const = default;
};

// Several replicas may have one number, each with a port of its own.
struct MulticastGroup {
  uint16_t id = 0;
  std::vector<Replica> replicas = {};
};

// The program mirrors packets to a session, which leads to a port.
struct MirrorSession {
  uint16_t number = 0;
  uint16_t port = 0;
};

}  // namespace slime::net
