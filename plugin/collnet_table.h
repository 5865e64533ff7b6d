// Adapters from NCCL's signatures to plugin/collnet.h.
#pragma once

#include "plugin/collnet.h"
#include "plugin/net_table.h"

namespace slime::plugin::table {

// As of the same device in ncclNet; the switch and the ring take host memory only.
template <typename Properties>
ResultCode coll_get_properties(int device, Properties* to) noexcept {
  const ResultCode code = get_properties(device, to);
  if (code == nccl::kSuccess) to->pointer_support = nccl::kPointerHost;
  return code;
}

inline ResultCode coll_init_v11(void** context, uint64_t comm_id, nccl::Logger logger) noexcept {
  return boundary("init", [&] { return init_context(context, comm_id, nullptr, logger); });
}

inline ResultCode coll_devices(int* count) noexcept {
  return boundary("devices", [&] { return coll::devices(count); });
}

inline ResultCode coll_listen_v6(int device, void* handle, void** listen_comm) noexcept {
  return boundary("listen", [&] {
    return coll::listen(device, handle, listen_comm, nccl::kTrafficClassUndefined);
  });
}

inline ResultCode coll_listen_v11(void* context, int device, void* handle,
                                  void** listen_comm) noexcept {
  return boundary("listen", [&] {
    return coll::listen(device, handle, listen_comm, traffic_class_of(context));
  });
}

inline ResultCode coll_connect(void* handles[], int ranks, int rank, void* listen_comm,
                               void** coll_comm) noexcept {
  return boundary("connect",
                  [&] { return coll::connect(handles, ranks, rank, listen_comm, coll_comm); });
}

inline ResultCode coll_reduce_support(nccl::DataType type, nccl::ReduceOp op,
                                      int* supported) noexcept {
  return boundary("reduceSupport", [&] { return coll::reduce_support(type, op, supported); });
}

template <typename Size>
ResultCode coll_reg_mr(void* comm, void* data, Size bytes, int type, void** mhandle) noexcept {
  return boundary("regMr", [&] {
    return coll::register_memory(comm, data, static_cast<size_t>(bytes), type, mhandle);
  });
}

inline ResultCode coll_reg_mr_dma_buf(void* comm, void* /*data*/, size_t bytes, int /*type*/,
                                      uint64_t /*offset*/, int fd, void** /*mhandle*/) noexcept {
  return boundary("regMrDmaBuf", [&] { return coll::register_dma_buf(comm, bytes, fd); });
}

inline ResultCode coll_dereg_mr(void* comm, void* mhandle) noexcept {
  return boundary("deregMr", [&] { return coll::deregister_memory(comm, mhandle); });
}

// A negative int arrives as a count that no memory holds.
template <typename Count>
ResultCode coll_iallreduce(void* comm, void* send_data, void* recv_data, Count count,
                           nccl::DataType type, nccl::ReduceOp op, void* send_mhandle,
                           void* recv_mhandle, void** request) noexcept {
  return boundary("iallreduce", [&] {
    return coll::iallreduce(comm,
                            {.send = send_data,
                             .receive = recv_data,
                             .count = static_cast<size_t>(count),
                             .type = type,
                             .op = op,
                             .send_mhandle = send_mhandle,
                             .receive_mhandle = recv_mhandle},
                            request);
  });
}

inline ResultCode coll_iflush(void* comm, void* /*data*/, int /*bytes*/, void* /*mhandle*/,
                              void** request) noexcept {
  return boundary("iflush", [&] { return coll::iflush(comm, request); });
}

inline ResultCode coll_test(void* request, int* done, int* size) noexcept {
  return boundary("test", [&] { return coll::test(request, done, size); });
}

inline ResultCode coll_close(void* comm) noexcept {
  return boundary("closeColl", [&] { return coll::close_coll(comm); });
}

inline ResultCode coll_close_listen(void* listen_comm) noexcept {
  return boundary("closeListen", [&] { return coll::close_listen(listen_comm); });
}

}  // namespace slime::plugin::table
