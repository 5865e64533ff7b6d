// The tables of all versions behind one set of calls, so that a test is written and compiled once.
#pragma once

#include <array>
#include <memory>

#include "test/boundary/support/support.h"
#include "tools/common/net_table.h"

namespace slime::boundary {

using nccl::ResultCode;
using HandleBytes = std::array<std::byte, nccl::kHandleMaxBytes>;
using AnyProperties = tools::DeviceProperties;

// The calls of tools::NetTable, and those that only tests make. Arguments go to the plugin as they
// are, also NULL ones. Sizes are narrowed to the version's type.
class Api : public tools::NetTable {
 public:
  static std::unique_ptr<Api> of(const Plugin& plugin, int version);  // nullptr: not exported

  bool complete() const;  // all that NCCL calls is there, and no more than it may be
  ResultCode init(nccl::Logger logger = Log::logger(),
                  int traffic_class = nccl::kTrafficClassUndefined) {
    config_.traffic_class = traffic_class;
    return NetTable::init(logger, 0x51e, &config_);
  }
  ResultCode init_into(void** context) {  // v11
    return NetTable::init_into(context, Log::logger(), 1, nullptr);
  }
  ResultCode set_net_attributes(void* context);  // v11; success before
  // v9. `count` may differ from the number of members, to see what the plugin does.
  ResultCode merge(int* device, const std::vector<int>* members, int count);
  ResultCode merge(int* device, const std::vector<int>& members) {
    return merge(device, &members, static_cast<int>(members.size()));
  }
  ResultCode connect(int device, void* handle, void** comm);
  ResultCode accept(void* listening, void** comm);
  ResultCode reg_dma_buf(void* comm, void* data, size_t bytes, int fd, void** mhandle);
  ResultCode isend(void* comm, const void* data, int64_t bytes, int tag, void* mhandle,
                   void** request) {
    return NetTable::isend(comm, const_cast<void*>(data), static_cast<size_t>(bytes), tag, mhandle,
                           nullptr, request);
  }
  ResultCode irecv(void* comm, int n, void** data, const int64_t* sizes, int* tags, void** mhandles,
                   void** request);
  ResultCode irecv_one(void* comm, void* data, int64_t bytes, int tag, void* mhandle,
                       void** request) {
    return irecv(comm, 1, &data, &bytes, &tag, &mhandle, request);
  }
  ResultCode iflush(void* comm, void** request);

 private:
  nccl::NetCommConfig config_{nccl::kTrafficClassUndefined};  // of the last init
};

}  // namespace slime::boundary
