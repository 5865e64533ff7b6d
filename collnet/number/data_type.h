// What an allreduce has: elements of a type, and an operation. NCCL's numbers of both are mapped in
// plugin/collnet.cc, those of slime/aggregation.h in aggregation/context_impl.cc, and the operation
// becomes that of SAP/2 (switch/protocol/sap.h) here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "switch/protocol/sap.h"

namespace slime {

enum class DataType : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kBfloat16,
};
inline constexpr size_t kDataTypes = 9;

constexpr size_t element_bytes(DataType type) {
  constexpr uint8_t kBytes[kDataTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 2};
  return kBytes[static_cast<uint8_t>(type)];
}
constexpr bool is_float(DataType type) { return type >= DataType::kFloat16; }

// Of normal numbers, the leading one included.
constexpr uint32_t significand_bits(DataType type) {
  return type == DataType::kFloat32 ? 24 : type == DataType::kFloat16 ? 11 : 8;
}

enum class ReduceOp : uint8_t { kSum, kMin, kMax };

constexpr sap::Op wire_op(ReduceOp op) { return static_cast<sap::Op>(op); }
static_assert(wire_op(ReduceOp::kSum) == sap::Op::kSum &&
              wire_op(ReduceOp::kMin) == sap::Op::kMin && wire_op(ReduceOp::kMax) == sap::Op::kMax);

}  // namespace slime
