// From a Reduction of the public interface to the operation of a worker, with all checks.
#include <cstdint>
#include <string>

#include "aggregation/context_impl.h"

namespace slime::aggregation {
namespace {

// The public enumerations are in the order of the workers'.
constexpr slime::DataType type_of(DataType type) { return static_cast<slime::DataType>(type); }
constexpr ReduceOp op_of(Op op) { return static_cast<ReduceOp>(op); }
static_assert(type_of(DataType::kInt8) == slime::DataType::kInt8 &&
              type_of(DataType::kUint8) == slime::DataType::kUint8 &&
              type_of(DataType::kInt32) == slime::DataType::kInt32 &&
              type_of(DataType::kUint32) == slime::DataType::kUint32 &&
              type_of(DataType::kInt64) == slime::DataType::kInt64 &&
              type_of(DataType::kUint64) == slime::DataType::kUint64 &&
              type_of(DataType::kFloat16) == slime::DataType::kFloat16 &&
              type_of(DataType::kFloat32) == slime::DataType::kFloat32 &&
              type_of(DataType::kBfloat16) == slime::DataType::kBfloat16);
static_assert(op_of(Op::kSum) == ReduceOp::kSum && op_of(Op::kMin) == ReduceOp::kMin &&
              op_of(Op::kMax) == ReduceOp::kMax);
static_assert(Context::kMaxOutstanding == Worker::kMaxOperations);

bool overlap_partly(const Reduction& reduction, size_t bytes) {
  const auto send = reinterpret_cast<uintptr_t>(reduction.send);
  const auto receive = reinterpret_cast<uintptr_t>(reduction.receive);
  const uintptr_t apart = send > receive ? send - receive : receive - send;
  return apart != 0 && apart < bytes;
}

}  // namespace

size_t element_bytes(DataType type) {
  return static_cast<size_t>(type) < kDataTypes ? slime::element_bytes(type_of(type)) : 0;
}

Outcome Context::Impl::check(const Reduction& reduction) const {
  const size_t width = element_bytes(reduction.type);
  if (width == 0 || reduction.op > Op::kMax) {
    return {Code::kInvalid,
            "allreduce: there is no type " + std::to_string(static_cast<int>(reduction.type)) +
                " with operation " + std::to_string(static_cast<int>(reduction.op))};
  }
  if (!Payload::supports(type_of(reduction.type), op_of(reduction.op))) {
    return {Code::kUnsupported,
            "allreduce: a switch has minimum and maximum of integers only, floats can be summed"};
  }
  if (reduction.count > PTRDIFF_MAX / width) {
    return {Code::kInvalid, "allreduce: " + std::to_string(reduction.count) + " elements of " +
                                std::to_string(width) + " bytes do not fit into memory"};
  }
  if (reduction.count > 0 && (reduction.send == nullptr || reduction.receive == nullptr)) {
    return {Code::kInvalid, "allreduce: a buffer is NULL"};
  }
  if (overlap_partly(reduction, reduction.count * width)) {
    return {Code::kInvalid, "allreduce: send and receive overlap; let them be the same or apart"};
  }
  return {};
}

// Past the conversion, a float is an integer of its size. Those of 16 bits are two bytes: a switch
// has no integers between.
Operation Context::Impl::operation_of(const Reduction& reduction) const {
  Operation operation{.send = reduction.send,
                      .receive = reduction.receive,
                      .count = reduction.count,
                      .type = type_of(reduction.type),
                      .op = op_of(reduction.op)};
  if (mode_ != Mode::kBypass || !is_float(operation.type)) return operation;
  const bool wide = operation.type == slime::DataType::kFloat32;
  operation.type = wide ? slime::DataType::kInt32 : slime::DataType::kInt8;
  if (!wide) operation.count *= 2;
  return operation;
}

}  // namespace slime::aggregation
