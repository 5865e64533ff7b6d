// SAP/2, the slime aggregation protocol: the packets between workers and switches.
//
// A packet is one UDP datagram: this header, then `lanes` 32-bit words of payload. Multi-byte
// fields are big-endian on the wire and in host order in `Header`. The payload stays big-endian
// words, whose numbers are of `format`. decode() checks a packet by itself; its callers check what
// depends on the job.
//
//      0        1        2         3        4            6           7
//     | A | 2  | type   | fmt, op | flags  | job        | generation| child |
//      8                                   12            14
//     | token                             | slot        | lanes             |
//      16                                  20
//     | epoch                             | cookie                          |
//      24       25       26        27      28
//     | exp. 0 | exp. 1 | special | level  | check                           |
//
// A job is named by number, generation and token together. The control channel gives the token,
// 32 random bits for each generation, to the members of the job. A switch or a worker drops a
// packet with another token and sends no answer to it. An attacker who cannot read the job's
// packets must guess the token, and succeeds once in 2^32 packets. An attacker who can read them
// has the token: it is no signature.
//
// A round that is no sum (minimum, maximum, or) has its lanes twice, one copy after the other:
// see check.h.
//
// Thread rules: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace slime::sap {

inline constexpr uint8_t kMagic = 0xA;
inline constexpr uint8_t kVersion = 2;
inline constexpr size_t kHeaderBytes = 32;

// Where each field of the header begins, in bytes. A switch in another language must use the same.
namespace at {
inline constexpr size_t kMagicVersion = 0;  // 4 bits each
inline constexpr size_t kType = 1;
inline constexpr size_t kShape = 2;  // format, then op: 4 bits each
inline constexpr size_t kFlags = 3;
inline constexpr size_t kJob = 4;
inline constexpr size_t kGeneration = 6;
inline constexpr size_t kChild = 7;
inline constexpr size_t kToken = 8;
inline constexpr size_t kSlot = 12;
inline constexpr size_t kLanes = 14;
inline constexpr size_t kEpoch = 16;
inline constexpr size_t kCookie = 20;
inline constexpr size_t kExponents = 24;  // two of one byte
inline constexpr size_t kSpecial = 26;
inline constexpr size_t kLevel = 27;
inline constexpr size_t kCheck = 28;
}  // namespace at

inline constexpr uint32_t kMaxShards = 16;
inline constexpr uint32_t kMaxRails = 8;      // local addresses of one contributor
inline constexpr uint32_t kMaxChildren = 32;  // contributors below one switch: a bit each
inline constexpr uint32_t kMaxSlots = 65536;  // of a job: a packet has 16 bits for the number
inline constexpr uint32_t kMaxLanes = 2048;   // 32-bit words; fits an MTU of 9000
inline constexpr size_t kMaxPacketBytes = kHeaderBytes + 4 * kMaxLanes;

enum class Type : uint8_t {
  kContribution = 1,  // worker, or inner switch's child, to switch
  kResult,            // switch to all its children
  kResultAgain,       // switch to one child that asked again
  kPartial,           // inner switch to its parent: a contribution of all its children
  kParentResult,      // parent to inner switch
  kQuery,             // child to switch: how far is this slot? no payload
  kStatus,            // the answer; payload: a word, the children that have contributed
  kReject,            // switch to worker; payload: a word, a Rejection
};

// What the 32-bit words hold. Sums wrap.
enum class Format : uint8_t {
  kI32 = 0,
  kU32 = 1,
  kI16 = 2,  // two a word
  kI8 = 3,   // four a word
  kI64 = 4,  // two words a number, high word first
  kU8 = 6,   // 5 stays free for raw float32, which no switch here adds yet
  kU64 = 7,
};
inline constexpr uint32_t kKnownFormats = 0b1101'1111;  // a bit each
// 32-bit numbers: all that a switch must have, with every operation. Workers do without the others.
inline constexpr uint32_t kWordFormats = 0b0000'0011;

constexpr bool has_format(uint32_t formats, Format format) {
  return (formats >> static_cast<uint32_t>(format) & 1) != 0;
}
// Whether these are formats that workers can do with: known ones, kWordFormats among them.
constexpr bool suffice(uint32_t formats) {
  return (formats & kWordFormats) == kWordFormats && (formats & ~kKnownFormats) == 0;
}

enum class Op : uint8_t { kSum, kMin, kMax, kOr };
inline constexpr uint8_t kOps = 4;

namespace flag {
inline constexpr uint8_t kExponentsOnly = 1;  // a round without payload, for exponents alone
inline constexpr uint8_t kFallback = 2;  // between workers: a kept result, or a question for it
inline constexpr uint8_t kKnown = 3;
}  // namespace flag

// OR-reduced, about the next round on the slot; kCoarse and kAnchored about this one.
namespace special {
inline constexpr uint8_t kNan = 1;
inline constexpr uint8_t kPlusInfinity = 2;
inline constexpr uint8_t kMinusInfinity = 4;
inline constexpr uint8_t kAnchored0 = 8;  // block 0 begins near its scale, at a contributor
inline constexpr uint8_t kUnknown = 32;  // this contributor has no exponents for its next round yet
inline constexpr uint8_t kCoarse = 64;   // a contributor's block begins far below its scale
inline constexpr uint8_t kAnchored1 = 128;
}  // namespace special

enum class Rejection : uint32_t {
  kNoJob = 1,       // no such job, or it has ended
  kGeneration = 2,  // the job has gone on to another generation
  kSource = 3,      // not the address that is bound to this child
  kSlot = 4,        // beyond the job's slots
  kShape = 5,       // lanes, format or op that the job did not ask for
};

// No block has a value other than zero.
inline constexpr int8_t kExponentOfZero = -127;

struct Header {
  Type type = Type::kContribution;
  Format format = Format::kI32;
  Op op = Op::kSum;
  uint8_t flags = 0;
  uint16_t job = 0;
  uint8_t generation = 0;
  uint8_t child = 0;                                         // below kMaxChildren
  uint32_t token = 0;                                        // of this generation of the job
  uint16_t slot = 0;                                         // counted within the job
  uint16_t lanes = 0;                                        // 32-bit words of payload
  uint32_t epoch = 0;                                        // of the slot; see slot_machine.h
  uint32_t cookie = 0;                                       // the switch returns it as it is
  int8_t exponents[2] = {kExponentOfZero, kExponentOfZero};  // of two blocks of numbers
  uint8_t special = 0;
  uint8_t level = 0;   // kPartial: levels below; kStatus: 1 if the bits are leaves; else 0
  uint32_t check = 0;  // see check.h
};

enum class Fault : uint8_t {
  kNone,
  kShort,    // less than a header
  kNotSap,   // another magic
  kVersion,  // of SAP, but another version of it
  kType,     // unknown type, format, op or flag
  kLength,   // `lanes` and the datagram's length disagree, or are beyond what the type may have
  kField,    // child or level out of range
};

namespace wire {

constexpr void put16(std::byte* at, uint16_t value) {
  at[0] = static_cast<std::byte>(value >> 8);
  at[1] = static_cast<std::byte>(value);
}
constexpr void put32(std::byte* at, uint32_t value) {
  put16(at, static_cast<uint16_t>(value >> 16));
  put16(at + 2, static_cast<uint16_t>(value));
}
constexpr uint8_t get8(const std::byte* at) { return static_cast<uint8_t>(*at); }
constexpr uint16_t get16(const std::byte* at) {
  return static_cast<uint16_t>(get8(at) << 8 | get8(at + 1));
}
constexpr uint32_t get32(const std::byte* at) {
  return static_cast<uint32_t>(get16(at)) << 16 | get16(at + 2);
}

}  // namespace wire

constexpr void encode(const Header& header, std::byte* to) {
  const auto pair = [](auto high, auto low) {
    return static_cast<std::byte>(static_cast<uint8_t>(high) << 4 | static_cast<uint8_t>(low));
  };
  to[at::kMagicVersion] = pair(kMagic, kVersion);
  to[at::kType] = static_cast<std::byte>(header.type);
  to[at::kShape] = pair(header.format, header.op);
  to[at::kFlags] = static_cast<std::byte>(header.flags);
  wire::put16(to + at::kJob, header.job);
  to[at::kGeneration] = static_cast<std::byte>(header.generation);
  to[at::kChild] = static_cast<std::byte>(header.child);
  wire::put32(to + at::kToken, header.token);
  wire::put16(to + at::kSlot, header.slot);
  wire::put16(to + at::kLanes, header.lanes);
  wire::put32(to + at::kEpoch, header.epoch);
  wire::put32(to + at::kCookie, header.cookie);
  to[at::kExponents] = static_cast<std::byte>(header.exponents[0]);
  to[at::kExponents + 1] = static_cast<std::byte>(header.exponents[1]);
  to[at::kSpecial] = static_cast<std::byte>(header.special);
  to[at::kLevel] = static_cast<std::byte>(header.level);
  wire::put32(to + at::kCheck, header.check);
}

// How many words a packet of this type may have: any number up to kMaxLanes, exactly one, or none.
constexpr bool length_fits(const Header& header) {
  switch (header.type) {
    case Type::kQuery:
      return header.lanes == 0;
    case Type::kStatus:
    case Type::kReject:
      return header.lanes == 1;
    default:
      return (header.flags & flag::kExponentsOnly) ? header.lanes == 0
                                                   : header.lanes > 0 && header.lanes <= kMaxLanes;
  }
}

// `header` is written only if the answer is kNone; then datagram.size() is kHeaderBytes + 4 *
// lanes.
constexpr Fault decode(std::span<const std::byte> datagram, Header* header) {
  if (datagram.empty()) return Fault::kShort;
  const std::byte* from = datagram.data();
  const auto byte = [from](size_t offset) { return wire::get8(from + offset); };
  if (byte(at::kMagicVersion) >> 4 != kMagic) return Fault::kNotSap;
  if ((byte(at::kMagicVersion) & 15) != kVersion) return Fault::kVersion;
  if (datagram.size() < kHeaderBytes) return Fault::kShort;
  const uint8_t type = byte(at::kType), shape = byte(at::kShape);
  if (type < static_cast<uint8_t>(Type::kContribution) ||
      type > static_cast<uint8_t>(Type::kReject) || (kKnownFormats >> (shape >> 4) & 1) == 0 ||
      (shape & 15) >= kOps || (byte(at::kFlags) & ~flag::kKnown) != 0) {
    return Fault::kType;
  }
  Header found;
  found.type = static_cast<Type>(byte(at::kType));
  found.format = static_cast<Format>(byte(at::kShape) >> 4);
  found.op = static_cast<Op>(byte(at::kShape) & 15);
  found.flags = byte(at::kFlags);
  found.job = wire::get16(from + at::kJob);
  found.generation = byte(at::kGeneration);
  found.child = byte(at::kChild);
  found.token = wire::get32(from + at::kToken);
  found.slot = wire::get16(from + at::kSlot);
  found.lanes = wire::get16(from + at::kLanes);
  found.epoch = wire::get32(from + at::kEpoch);
  found.cookie = wire::get32(from + at::kCookie);
  found.exponents[0] = static_cast<int8_t>(byte(at::kExponents));
  found.exponents[1] = static_cast<int8_t>(byte(at::kExponents + 1));
  found.special = byte(at::kSpecial);
  found.level = byte(at::kLevel);
  found.check = wire::get32(from + at::kCheck);
  if (!length_fits(found) || datagram.size() != kHeaderBytes + 4 * size_t{found.lanes}) {
    return Fault::kLength;
  }
  if (found.child >= kMaxChildren ||
      (found.level != 0 && found.type != Type::kPartial && found.type != Type::kStatus)) {
    return Fault::kField;
  }
  *header = found;
  return Fault::kNone;
}

}  // namespace slime::sap
