// ncclCollNetPlugin_v6 ... v12, made as those of ncclNet are (net_tables.cc).
#include "plugin/abi/collnet_tables.h"

#include "plugin/collnet.h"
#include "plugin/net_tables.h"

namespace slime::plugin::coll {
namespace {

using nccl::ResultCode;
using table::init;
using table::make_virtual_device;

// v11
ResultCode init(void** context, uint64_t comm_id, nccl::Logger logger) noexcept {
  return api_call("init", [&] { return init_context(context, comm_id, nullptr, logger); });
}

// As of the same device in ncclNet; the switch and the ring take host memory only.
template <typename Properties>
ResultCode get_properties(int device, Properties* to) noexcept {
  const ResultCode code = table::get_properties(device, to);
  if (code == nccl::kSuccess) to->pointer_support = nccl::kPointerHost;
  return code;
}

ResultCode listen(int device, void* handle, void** listen_comm) noexcept {
  return api_call("listen", [&] {
    return coll::listen(device, handle, listen_comm, nccl::kTrafficClassUndefined);
  });
}

// v11
ResultCode listen(void* context, int device, void* handle, void** listen_comm) noexcept {
  return api_call("listen", [&] {
    return coll::listen(device, handle, listen_comm, traffic_class_of(context));
  });
}

// int before v8
template <typename Size>
ResultCode reg_mr(void* comm, void* data, Size bytes, int type, void** mhandle) noexcept {
  return api_call("regMr", [&] {
    return coll::register_memory(comm, data, static_cast<size_t>(bytes), type, mhandle);
  });
}

ResultCode reg_mr_dma_buf(void* comm, void* /*data*/, size_t bytes, int /*type*/,
                          uint64_t /*offset*/, int fd, void** /*mhandle*/) noexcept {
  return api_call("regMrDmaBuf", [&] { return coll::register_dma_buf(comm, bytes, fd); });
}

// int before v9. A negative one arrives as a count that no memory holds.
template <typename Count>
ResultCode iallreduce(void* comm, void* send_data, void* recv_data, Count count,
                      nccl::DataType type, nccl::ReduceOp op, void* send_mhandle,
                      void* recv_mhandle, void** request) noexcept {
  return api_call("iallreduce", [&] {
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

ResultCode iflush(void* comm, void* /*data*/, int /*bytes*/, void* /*mhandle*/,
                  void** request) noexcept {
  return api_call("iflush", [&] { return coll::iflush(comm, request); });
}

template <typename Table>
constexpr Table make_table() {
  Table table{};  // iallgather and ireducescatter, of v8, stay NULL (abi/collnet_tables.h)
  table.name = kPluginName;
  table.init = init;
  table.devices = api_function<"devices", coll::devices>;
  table.get_properties = get_properties;
  table.listen = listen;
  table.connect = api_function<"connect", coll::connect>;
  table.reduce_support = api_function<"reduceSupport", coll::reduce_support>;
  table.reg_mr = reg_mr;
  table.reg_mr_dma_buf = reg_mr_dma_buf;
  table.dereg_mr = api_function<"deregMr", coll::deregister_memory>;
  table.iallreduce = iallreduce;
  table.iflush = iflush;
  table.test = api_function<"test", coll::test>;
  table.close_coll = api_function<"closeColl", coll::close_coll>;
  table.close_listen = api_function<"closeListen", coll::close_listen>;
  if constexpr (requires { table.make_virtual_device; }) {
    table.make_virtual_device = make_virtual_device;
  }
  if constexpr (requires { table.finalize; }) {
    table.finalize = api_function<"finalize", plugin::finalize>;
  }
  return table;
}

}  // namespace

SLIME_EXPORT constinit const nccl::CollNetV6 ncclCollNetPlugin_v6 = make_table<nccl::CollNetV6>();
SLIME_EXPORT constinit const nccl::CollNetV7 ncclCollNetPlugin_v7 = make_table<nccl::CollNetV7>();
SLIME_EXPORT constinit const nccl::CollNetV8 ncclCollNetPlugin_v8 = make_table<nccl::CollNetV8>();
SLIME_EXPORT constinit const nccl::CollNetV9 ncclCollNetPlugin_v9 = make_table<nccl::CollNetV9>();
SLIME_EXPORT constinit const nccl::CollNetV10 ncclCollNetPlugin_v10 =
    make_table<nccl::CollNetV10>();
SLIME_EXPORT constinit const nccl::CollNetV11 ncclCollNetPlugin_v11 =
    make_table<nccl::CollNetV11>();
SLIME_EXPORT constinit const nccl::CollNetV12 ncclCollNetPlugin_v12 =
    make_table<nccl::CollNetV12>();

}  // namespace slime::plugin::coll
