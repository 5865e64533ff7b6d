// The terms of nccl-tests: collectives, data types, reductions, protocols, with their names.
#pragma once

#include <strings.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "plugin/abi/collnet_tables.h"
#include "rendezvous/member.h"

namespace slime::perf {

using rendezvous::Coordinator;
using rendezvous::Heartbeat;
using rendezvous::Identity;
using rendezvous::Member;
using rendezvous::number_in;
using rendezvous::RankInfo;
using rendezvous::text_in;

enum class Collective : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  kSendRecv,
};
using nccl::DataType;  // without the eight-bit floats
enum class RedOp : uint8_t { kSum, kProd, kMax, kMin, kAvg, kNone };  // kNone: a copy
// How all_reduce is carried out: by the ranks in a ring, or by the network (ncclCollNet).
enum class Algorithm : uint8_t { kRing, kCollNet };
enum class Protocol : uint8_t { kLl, kLl128, kSimple };

inline constexpr size_t kDataTypes = 10, kRedOps = 5, kProtocols = 3;
inline constexpr std::array<size_t, kDataTypes> kDataTypeBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

// The names of the values, in their order.
template <typename Word>
inline constexpr std::array<const char*, 0> kNames{};
template <>
inline constexpr std::array<const char*, 6> kNames<Collective> = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv"};
template <>
inline constexpr std::array<const char*, kDataTypes> kNames<DataType> = {
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16"};
template <>
inline constexpr std::array<const char*, kRedOps> kNames<RedOp> = {"sum", "prod", "max", "min",
                                                                   "avg"};
template <>
inline constexpr std::array<const char*, 2> kNames<Algorithm> = {"ring", "collnet"};
template <>
inline constexpr std::array<const char*, kProtocols> kNames<Protocol> = {"LL", "LL128", "Simple"};

template <typename Word>
const char* name_of(Word word) {
  return kNames<Word>[static_cast<size_t>(word)];
}
inline const char* name_of(RedOp op) {
  return op == RedOp::kNone ? "none" : kNames<RedOp>[static_cast<size_t>(op)];
}
// The value of this name, in upper or lower case.
template <typename Word>
std::optional<Word> find_word(const std::string& name) {
  const auto& names = kNames<Word>;
  const auto found = std::find_if(names.begin(), names.end(), [&name](const char* known) {
    return strcasecmp(name.c_str(), known) == 0;
  });
  if (found == names.end()) return std::nullopt;
  return static_cast<Word>(found - names.begin());
}
// A network sees averages as sums.
inline RedOp network_op(RedOp op) { return op == RedOp::kAvg ? RedOp::kSum : op; }
inline nccl::ReduceOp nccl_op(RedOp op) { return static_cast<nccl::ReduceOp>(network_op(op)); }
inline size_t size_of(DataType type) { return kDataTypeBytes[static_cast<size_t>(type)]; }

inline bool reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
}
inline bool is_point_to_point(Collective collective) {
  return collective == Collective::kAllToAll || collective == Collective::kSendRecv;
}

}  // namespace slime::perf
