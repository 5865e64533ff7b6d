// NetApi over one version of the table.
#pragma once

#include <string>

#include "plugin/abi/net_tables.h"
#include "tools/perf/net_api.h"

namespace slime::perf {

template <typename Table, typename Properties, int kVersion>
class NetAdapter final : public NetApi {
 public:
  explicit NetAdapter(const Table* table) : table_(table) {}

  int version() const override { return kVersion; }
  const char* name() const override { return table_->name; }
  bool optional_completion() const override { return kVersion >= 9; }

  nccl::ResultCode init(nccl::Logger logger, uint64_t comm_id) override {
    (void)comm_id;
    if constexpr (kVersion >= 11) {
      return table_->init(&context_, comm_id, &config_, logger, nullptr);
    } else if constexpr (kVersion == 10) {
      return table_->init(logger, nullptr);
    } else {
      return table_->init(logger);
    }
  }

  nccl::ResultCode finalize() override {
    if constexpr (kVersion >= 11) return table_->finalize(context_);
    return nccl::kSuccess;
  }

  nccl::ResultCode devices(int* count) override { return table_->devices(count); }

  nccl::ResultCode properties(int device, NetProperties* out) override {
    Properties in{};
    const nccl::ResultCode code = table_->get_properties(device, &in);
    if (code != nccl::kSuccess) return code;
    out->name = in.name != nullptr ? in.name : "";
    out->pci_path = in.pci_path != nullptr ? in.pci_path : "";
    out->guid = in.guid;
    out->pointer_support = in.pointer_support;
    out->speed_mbps = in.speed_mbps;
    out->port = in.port;
    out->latency_us = in.latency_us;
    out->max_comms = in.max_comms;
    out->max_receives = in.max_receives;
    if constexpr (kVersion >= 7) out->on_host = in.net_device_type == nccl::kNetDeviceHost;
    if constexpr (kVersion >= 9) out->max_p2p_bytes = in.max_p2p_bytes;
    return code;
  }

  nccl::ResultCode listen(int device, void* handle, void** listen_comm) override {
    if constexpr (kVersion >= 11) {
      return table_->listen(context_, device, handle, listen_comm);
    } else {
      return table_->listen(device, handle, listen_comm);
    }
  }

  nccl::ResultCode connect(int device, void* handle, void** send_comm) override {
    nccl::NetDeviceHandle* offload = nullptr;
    (void)offload;
    if constexpr (kVersion >= 11) {
      return table_->connect(context_, device, handle, send_comm, &offload);
    } else if constexpr (kVersion == 10) {
      return table_->connect(device, &config_, handle, send_comm, &offload);
    } else if constexpr (kVersion >= 7) {
      return table_->connect(device, handle, send_comm, &offload);
    } else {
      return table_->connect(device, handle, send_comm);
    }
  }

  nccl::ResultCode accept(void* listen_comm, void** recv_comm) override {
    nccl::NetDeviceHandle* offload = nullptr;
    (void)offload;
    if constexpr (kVersion >= 7) {
      return table_->accept(listen_comm, recv_comm, &offload);
    } else {
      return table_->accept(listen_comm, recv_comm);
    }
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
  nccl::ResultCode close_send(void* comm) override { return table_->close_send(comm); }
  nccl::ResultCode close_recv(void* comm) override { return table_->close_recv(comm); }
  nccl::ResultCode close_listen(void* comm) override { return table_->close_listen(comm); }

  nccl::ResultCode isend(void* comm, void* data, size_t bytes, int tag, void* mhandle,
                         void** request) override {
    if constexpr (kVersion >= 10) {
      return table_->isend(comm, data, bytes, tag, mhandle, &profile_, request);
    } else if constexpr (kVersion == 9) {
      return table_->isend(comm, data, bytes, tag, mhandle, request);
    } else {
      return table_->isend(comm, data, static_cast<int>(bytes), tag, mhandle, request);
    }
  }

  nccl::ResultCode irecv(void* comm, void* data, size_t bytes, int tag, void* mhandle,
                         void** request) override {
    if constexpr (kVersion >= 10) {
      void* profile = &profile_;
      return table_->irecv(comm, 1, &data, &bytes, &tag, &mhandle, &profile, request);
    } else if constexpr (kVersion == 9) {
      return table_->irecv(comm, 1, &data, &bytes, &tag, &mhandle, request);
    } else {
      int size = static_cast<int>(bytes);
      return table_->irecv(comm, 1, &data, &size, &tag, &mhandle, request);
    }
  }

  nccl::ResultCode test(void* request, int* done, int* sizes) override {
    return table_->test(request, done, sizes);
  }

  void receive_consumed(void* comm, void* request) override {
    if constexpr (kVersion >= 7) {
      if (table_->irecv_consumed != nullptr) (void)table_->irecv_consumed(comm, 1, request);
    }
  }

 private:
  const Table* const table_;
  void* context_ = nullptr;
  void* profile_ = nullptr;  // what NCCL passes without a profiler: a pointer to a null handle
  nccl::NetCommConfig config_{nccl::kTrafficClassUndefined};
};

}  // namespace slime::perf
