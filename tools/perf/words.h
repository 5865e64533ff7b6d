// The terms of nccl-tests: collectives, data types, reductions, protocols, with their names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rendezvous/member.h"

namespace slime::perf {

using rendezvous::Agreement;
using rendezvous::all_variables;
using rendezvous::Coordinator;
using rendezvous::find_identity;
using rendezvous::Identity;
using rendezvous::Member;
using rendezvous::number_in;
using rendezvous::Pulse;
using rendezvous::RankInfo;
using rendezvous::text_in;
using rendezvous::texts_of;
using rendezvous::Variables;
using rendezvous::variables_for;

enum class Collective : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  kSendRecv,
};
inline constexpr std::array<std::string_view, 6> kCollectiveNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv"};

// In the order of ncclDataType_t, without the eight-bit floats.
enum class DataType : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kHalf,
  kFloat,
  kDouble,
  kBfloat16,
};
inline constexpr size_t kDataTypes = 10;
inline constexpr std::array<std::string_view, kDataTypes> kDataTypeNames = {
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16"};
inline constexpr std::array<size_t, kDataTypes> kDataTypeBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

enum class RedOp : uint8_t { kSum, kProd, kMax, kMin, kAvg };
inline constexpr size_t kRedOps = 5;
inline constexpr std::array<std::string_view, kRedOps> kRedOpNames = {"sum", "prod", "max", "min",
                                                                      "avg"};

// How all_reduce is carried out: by the ranks in a ring, or by the network (ncclCollNet).
enum class Algorithm : uint8_t { kRing, kCollNet };
inline constexpr std::array<std::string_view, 2> kAlgorithmNames = {"ring", "collnet"};

enum class Protocol : uint8_t { kLl, kLl128, kSimple };
inline constexpr size_t kProtocols = 3;
inline constexpr std::array<std::string_view, kProtocols> kProtocolNames = {"LL", "LL128",
                                                                            "Simple"};

inline std::string_view name_of(Collective collective) {
  return kCollectiveNames[static_cast<size_t>(collective)];
}
inline std::string_view name_of(DataType type) { return kDataTypeNames[static_cast<size_t>(type)]; }
inline std::string_view name_of(RedOp op) { return kRedOpNames[static_cast<size_t>(op)]; }
inline std::string_view name_of(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<size_t>(algorithm)];
}
inline std::string_view name_of(Protocol proto) {
  return kProtocolNames[static_cast<size_t>(proto)];
}
inline size_t size_of(DataType type) { return kDataTypeBytes[static_cast<size_t>(type)]; }

inline bool reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
}
inline bool is_point_to_point(Collective collective) {
  return collective == Collective::kAllToAll || collective == Collective::kSendRecv;
}

}  // namespace slime::perf
