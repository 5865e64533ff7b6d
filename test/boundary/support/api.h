// The tables of all versions behind one set of calls, so that a test is written and compiled once.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "test/boundary/support/support.h"

namespace slime::boundary {

using nccl::ResultCode;
using HandleBytes = std::array<std::byte, nccl::kHandleMaxBytes>;

// The union of all versions' properties; what a version lacks stays empty.
struct AnyProperties {
  char* name = nullptr;
  char* pci_path = nullptr;
  uint64_t guid = 0;
  int pointer_support = 0;
  int speed_mbps = 0;
  int port = 0;
  float latency_us = 0;
  int max_comms = 0;
  int max_receives = 0;
  std::optional<int> net_device_type, net_device_version;  // v7
  std::optional<int> registration_is_global;               // v8
  std::optional<int> force_flush;                          // v9
  std::optional<std::vector<int>> members;                 // v9
  std::optional<size_t> max_p2p_bytes, max_collective_bytes;
  std::optional<int> max_multi_request_size;  // v11
  std::optional<int> rail_id, plane_id;       // v12
};

// Arguments go to the plugin as they are, also NULL ones. Sizes are narrowed to the version's type.
class Api {
 public:
  static constexpr int kOldest = 6, kNewest = 12;
  static std::unique_ptr<Api> of(const Plugin& plugin, int version);  // nullptr: not exported
  virtual ~Api() = default;

  int version = 0;
  void* context = nullptr;                                   // of the last init, for v11 and later
  nccl::NetCommConfig config{nccl::kTrafficClassUndefined};  // of the last init, for v10's connect

  virtual const char* name() const = 0;
  virtual bool complete() const = 0;  // all that NCCL calls is there, and no more than it may be
  virtual ResultCode init(nccl::Logger logger = Log::logger(),
                          int traffic_class = nccl::kTrafficClassUndefined) = 0;
  virtual ResultCode init_into(void** context) = 0;          // v11
  virtual ResultCode finalize(void* context) = 0;            // v11; success before
  virtual ResultCode set_net_attributes(void* context) = 0;  // v11; success before
  virtual ResultCode devices(int* count) = 0;
  virtual ResultCode properties(int device, AnyProperties* properties) = 0;
  // v9. `count` may differ from the number of members, to see what the plugin does.
  virtual ResultCode merge(int* device, const std::vector<int>* members, int count) = 0;
  virtual ResultCode listen(int device, void* handle, void** comm) = 0;
  virtual ResultCode connect(int device, void* handle, void** comm) = 0;
  virtual ResultCode accept(void* listening, void** comm) = 0;
  virtual ResultCode reg(void* comm, void* data, int64_t bytes, int type, void** mhandle) = 0;
  virtual ResultCode reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** mhandle) = 0;
  virtual ResultCode dereg(void* comm, void* mhandle) = 0;
  virtual ResultCode isend(void* comm, const void* data, int64_t bytes, int tag, void* mhandle,
                           void** request) = 0;
  virtual ResultCode irecv(void* comm, int n, void** data, const int64_t* sizes, int* tags,
                           void** mhandles, void** request) = 0;
  virtual ResultCode iflush(void* comm, void** request) = 0;
  virtual ResultCode test(void* request, int* done, int* sizes) = 0;
  virtual ResultCode close_send(void* comm) = 0;
  virtual ResultCode close_recv(void* comm) = 0;
  virtual ResultCode close_listen(void* comm) = 0;

  ResultCode irecv_one(void* comm, void* data, int64_t bytes, int tag, void* mhandle,
                       void** request) {
    return irecv(comm, 1, &data, &bytes, &tag, &mhandle, request);
  }
  ResultCode merge(int* device, const std::vector<int>& members) {
    return merge(device, &members, static_cast<int>(members.size()));
  }
};

}  // namespace slime::boundary
