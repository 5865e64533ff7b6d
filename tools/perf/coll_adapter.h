// CollApi over one version of the table.
#pragma once

#include "plugin/abi/collnet_tables.h"
#include "tools/perf/coll_api.h"
#include "tools/perf/coll_plan.h"

namespace slime::perf {

template <typename Table, typename Properties, int kVersion>
class CollAdapter final : public CollApi {
 public:
  explicit CollAdapter(const Table* table) : table_(table) {}

  int version() const override { return kVersion; }
  const char* name() const override { return table_->name; }

  nccl::ResultCode init(nccl::Logger logger, uint64_t comm_id) override {
    (void)comm_id;
    if constexpr (kVersion >= 11) {
      return table_->init(&context_, comm_id, logger);
    } else {
      return table_->init(logger);
    }
  }

  nccl::ResultCode finalize() override {
    if constexpr (kVersion >= 11) return table_->finalize(context_);
    return nccl::kSuccess;
  }

  nccl::ResultCode devices(int* count) override { return table_->devices(count); }

  nccl::ResultCode properties(int device, CollProperties* out) override {
    Properties in{};
    const nccl::ResultCode code = table_->get_properties(device, &in);
    if (code != nccl::kSuccess) return code;
    out->name = in.name != nullptr ? in.name : "";
    out->pointer_support = in.pointer_support;
    out->max_collective_bytes = kMaxCollBytes;
    if constexpr (kVersion >= 9) out->max_collective_bytes = in.max_collective_bytes;
    return code;
  }

  nccl::ResultCode listen(int device, void* handle, void** listen_comm) override {
    if constexpr (kVersion >= 11) {
      return table_->listen(context_, device, handle, listen_comm);
    } else {
      return table_->listen(device, handle, listen_comm);
    }
  }

  nccl::ResultCode connect(void** handles, int ranks, int rank, void* listen_comm,
                           void** coll_comm) override {
    return table_->connect(handles, ranks, rank, listen_comm, coll_comm);
  }

  nccl::ResultCode reduce_support(DataType type, RedOp op, int* supported) override {
    return table_->reduce_support(type_of(type), op_of(op), supported);
  }

  nccl::ResultCode reg_mr(void* comm, void* data, size_t bytes, void** mhandle) override {
    if constexpr (kVersion <= 7) {
      // NCCL's shim for these tables refuses what an int cannot hold (net_v7.cc).
      if (bytes >= size_t{1} << 31) return nccl::kInternalError;
      return table_->reg_mr(comm, data, static_cast<int>(bytes), nccl::kPointerHost, mhandle);
    } else {
      return table_->reg_mr(comm, data, bytes, nccl::kPointerHost, mhandle);
    }
  }

  nccl::ResultCode dereg_mr(void* comm, void* mhandle) override {
    return table_->dereg_mr(comm, mhandle);
  }
  nccl::ResultCode close_coll(void* comm) override { return table_->close_coll(comm); }
  nccl::ResultCode close_listen(void* comm) override { return table_->close_listen(comm); }

  nccl::ResultCode iallreduce(void* comm, const CollCall& call, void** request) override {
    using Count = std::conditional_t<(kVersion >= 9), size_t, int>;
    return table_->iallreduce(comm, call.send, call.receive, static_cast<Count>(call.count),
                              type_of(call.type), op_of(call.op), call.send_handle,
                              call.receive_handle, request);
  }

  nccl::ResultCode test(void* request, int* done, int* size) override {
    return table_->test(request, done, size);
  }

 private:
  // Both lists are in NCCL's order.
  static nccl::DataType type_of(DataType type) { return static_cast<nccl::DataType>(type); }
  static nccl::ReduceOp op_of(RedOp op) {
    return op == RedOp::kAvg ? nccl::kSum : static_cast<nccl::ReduceOp>(op);
  }

  const Table* const table_;
  void* context_ = nullptr;
};

}  // namespace slime::perf
