// What P4Switch writes to a device, in terms that all runtime interfaces have. Names are those of
// the compiled P4 program, with all controls from the outermost on. They last as long as the
// process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
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

// A copy of a packet. The program reads the number; the copy leaves at the port.
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

// Ports by replica number.
inline std::map<uint16_t, std::vector<uint16_t>> ports_by_number(const MulticastGroup& group) {
  std::map<uint16_t, std::vector<uint16_t>> ports;
  for (const Replica& replica : group.replicas) ports[replica.number].push_back(replica.port);
  return ports;
}

// A value as runtime interfaces take it: big-endian, in as many bytes as the bits need.
inline std::string bytes_of(uint64_t value, uint32_t bits) {
  std::string bytes((bits + 7) / 8, '\0');
  for (size_t i = 0; i < bytes.size() && i < sizeof value; ++i) {
    bytes[bytes.size() - 1 - i] = static_cast<char>(value >> (8 * i));
  }
  return bytes;
}

// The program mirrors packets to a session, which leads to a port.
struct MirrorSession {
  uint16_t number = 0;
  uint16_t port = 0;
};

}  // namespace slime::net
