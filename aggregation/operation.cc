// From a Reduction of the public interface to the operation of a worker, with all checks.
#include <cstdint>
#include <string>

#include "aggregation/context_impl.h"

namespace slime::aggregation {
namespace {

// The public types are in the order of the workers'.
constexpr size_t kTypes = number::kDataTypes;
static_assert(static_cast<size_t>(DataType::kBfloat16) + 1 == kTypes);
static_assert(
    static_cast<int>(DataType::kInt8) == static_cast<int>(number::DataType::kInt8) &&
    static_cast<int>(DataType::kUint64) == static_cast<int>(number::DataType::kUint64) &&
    static_cast<int>(DataType::kFloat16) == static_cast<int>(number::DataType::kFloat16) &&
    static_cast<int>(DataType::kFloat32) == static_cast<int>(number::DataType::kFloat32) &&
    static_cast<int>(DataType::kBfloat16) == static_cast<int>(number::DataType::kBfloat16));
static_assert(Context::kMaxOutstanding == Worker::kMaxOperations);

number::DataType type_of(DataType type) { return static_cast<number::DataType>(type); }

sap::Op op_of(Op op) {
  switch (op) {
    case Op::kSum:
      return sap::Op::kSum;
    case Op::kMin:
      return sap::Op::kMin;
    case Op::kMax:
      return sap::Op::kMax;
  }
  return sap::Op::kSum;
}

bool overlap_partly(const Reduction& reduction, size_t bytes) {
  const auto send = reinterpret_cast<uintptr_t>(reduction.send);
  const auto receive = reinterpret_cast<uintptr_t>(reduction.receive);
  const uintptr_t apart = send > receive ? send - receive : receive - send;
  return apart != 0 && apart < bytes;
}

}  // namespace

size_t element_bytes(DataType type) {
  return static_cast<size_t>(type) < kTypes ? number::element_bytes(type_of(type)) : 0;
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
  if (mode_ != Mode::kBypass || !number::is_float(operation.type)) return operation;
  const bool wide = operation.type == number::DataType::kFloat32;
  operation.type = wide ? number::DataType::kInt32 : number::DataType::kInt8;
  if (!wide) operation.count *= 2;
  return operation;
}

}  // namespace slime::aggregation
