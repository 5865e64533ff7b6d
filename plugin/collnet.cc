// ncclCollNetPlugin_v6 ... v12: turns NCCL's calls into operations of a CollComm. The tables are
// made as in net_tables.cc.
//
// Threads: connect waits, and NCCL calls it from a service thread; iallreduce, iflush and test of
// one comm come from one thread.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "plugin/abi/collnet_tables.h"
#include "plugin/net_tables.h"

namespace slime::plugin::coll {
namespace {

using nccl::ResultCode;
using table::init;
using table::make_virtual_device;

constexpr std::pair<nccl::DataType, DataType> kTypes[] = {
    {nccl::kInt8, DataType::kInt8},        {nccl::kUint8, DataType::kUint8},
    {nccl::kInt32, DataType::kInt32},      {nccl::kUint32, DataType::kUint32},
    {nccl::kInt64, DataType::kInt64},      {nccl::kUint64, DataType::kUint64},
    {nccl::kFloat16, DataType::kFloat16},  {nccl::kFloat32, DataType::kFloat32},
    {nccl::kBfloat16, DataType::kBfloat16}};
constexpr std::pair<nccl::ReduceOp, ReduceOp> kOps[] = {
    {nccl::kSum, ReduceOp::kSum}, {nccl::kMax, ReduceOp::kMax}, {nccl::kMin, ReduceOp::kMin}};
static_assert(std::size(kTypes) == kDataTypes);

// nullopt: the switch does not have the type or the operation.
template <typename Theirs, typename Ours, size_t n>
constexpr std::optional<Ours> ours_of(const std::pair<Theirs, Ours> (&table)[n], Theirs theirs) {
  for (const auto& [from, to] : table) {
    if (from == theirs) return to;
  }
  return std::nullopt;
}
constexpr auto type_of(nccl::DataType type) { return ours_of(kTypes, type); }
constexpr auto op_of(nccl::ReduceOp op) { return ours_of(kOps, op); }
// NCCL counts kFloat64, which no switch adds up, before kBfloat16, and the maximum before the
// minimum.
static_assert(type_of(nccl::kBfloat16) == DataType::kBfloat16 && !type_of(nccl::kFloat64) &&
              op_of(nccl::kMin) == ReduceOp::kMin && !op_of(nccl::kProd));

bool supported_pair(nccl::DataType type, nccl::ReduceOp op) {
  const auto known_type = type_of(type);
  const auto known_op = op_of(op);
  return known_type && known_op && Payload::supports(*known_type, *known_op);
}

bool covers(const void* mhandle, const void* data, size_t bytes) {
  const auto* const region = static_cast<const MemoryRegion*>(mhandle);
  return bytes == 0 || (region != nullptr && region->contains(data, bytes));
}

Error failure_of(OpenComm& comm) {
  Error error = comm.session->failure();
  if (std::exchange(comm.failure_logged, true)) error.what.clear();
  return error;
}

[[gnu::cold]] Error bad_allreduce(const Operation& operation, nccl::DataType type,
                                  nccl::ReduceOp op) {
  return make_error(Status::kInvalid, 0,
                    "iallreduce of %zu elements of type %d, operation %d, from %p to %p: "
                    "reduceSupport did not promise it, or a buffer is not inside its mhandle's "
                    "registration",
                    operation.count, type, op, operation.send, operation.receive);
}

// True, with a warning, if a setting makes the results meaningless: a training run must not use
// them.
bool is_for_measurement(const Settings& settings) {
  if (settings.debug_mode == "normal") return false;
  SLIME_WARN(
      "no CollNet: NCCL_SLIME_DEBUG_MODE=%s is for measurements with slime/aggregation.h, "
      "not for NCCL; unset it",
      settings.debug_mode.c_str());
  return true;
}

// The devices are those of the net table, in their order. There are none unless NCCL_SLIME_SWITCH
// names a switch.
Result<void> devices(int* count) {
  auto known = plugin::devices(count);
  if (!known) return known;
  const Devices* const devices = State::get().devices();
  if (devices == nullptr || devices->settings().switch_address.empty()) *count = 0;
  if (*count > 0 && is_for_measurement(devices->settings())) *count = 0;
  return {};
}

// This call waits. If one member fails, all fail, and then the listenComm is closed.
Result<void> connect(void* handles[], int ranks, int rank, void* listen_comm, void** coll_comm) {
  if (coll_comm == nullptr) return fail(null_argument("collComm"));
  *coll_comm = nullptr;
  const OpenComm* const listening = State::get().find(listen_comm, CommKind::kCollListen);
  if (listening == nullptr) return fail(not_a(CommKind::kCollListen, listen_comm));
  // NCCL forgets the listenComm when this fails (src/transport/coll_net.cc, sharedConnect).
  const auto end = [&](Error error) {
    State::get().close(listen_comm, CommKind::kCollListen);
    return fail(std::move(error));
  };
  if (handles == nullptr) return end(null_argument("handles"));
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return end(make_error(Status::kInvalid, 0, "rank %d of %d cannot be", rank, ranks));
  }
  std::vector<Handle> all(static_cast<size_t>(ranks));
  for (size_t i = 0; i < all.size(); ++i) {
    if (handles[i] == nullptr) return end(null_argument("a handle"));
    memcpy(all[i].data(), handles[i], all[i].size());
  }
  const auto policy = State::get().tuner_policy();
  auto session = CollComm::connect(*State::get().devices(), listening->device_index,
                                   *listening->listener, all, static_cast<uint32_t>(rank),
                                   policy != nullptr ? policy->digest() : 0, listening->options);
  if (!session) return end(std::move(session.error()));
  auto comm =
      std::make_unique<OpenComm>(CommKind::kColl, listening->device, listening->device_index);
  comm->session = std::move(*session);
  comm->requests.resize(Worker::kMaxOperations);
  *coll_comm = State::get().adopt(std::move(comm));
  return {};
}

Result<void> reduce_support(nccl::DataType type, nccl::ReduceOp op, int* supported) {
  if (supported == nullptr) return fail(null_argument("supported"));
  *supported = supported_pair(type, op) ? 1 : 0;
  return {};
}

Result<void> register_memory(void* comm, void* data, size_t bytes, int type, void** mhandle) {
  const OpenComm* const open = State::get().find(comm, CommKind::kColl);
  if (open == nullptr) return fail(not_a(CommKind::kColl, comm));
  if (type != nccl::kPointerHost) {
    return fail(make_error(Status::kUnsupported, 0,
                           "CollNet takes host memory only, not %zu bytes at %p of type %d; its "
                           "ptrSupport says so",
                           bytes, data, type));
  }
  return register_on(*open->device, {data, bytes}, type, mhandle);
}

Result<void> register_dma_buf(void* comm, void* /*data*/, size_t bytes, int /*type*/,
                              uint64_t /*offset*/, int fd, void** /*mhandle*/) {
  const OpenComm* const open = State::get().find(comm, CommKind::kColl);
  if (open == nullptr) return fail(not_a(CommKind::kColl, comm));
  return fail(make_error(Status::kUnsupported, 0,
                         "CollNet takes host memory only, not DMA-BUF %d of %zu bytes", fd, bytes));
}

Result<void> deregister_memory(void* comm, void* mhandle) {
  const OpenComm* const open = State::get().find(comm, CommKind::kColl);
  if (open == nullptr) return fail(not_a(CommKind::kColl, comm));
  return deregister_on(*open->device, mhandle);
}

// *request stays NULL if too many operations are outstanding; NCCL then calls again. A negative
// `count` of the older tables arrives as a number too large for any memory; the error shows it as
// it was.
Result<void> start(void* comm, const void* send, void* receive, size_t count, nccl::DataType type,
                   nccl::ReduceOp op, const void* send_mhandle, const void* receive_mhandle,
                   void** request) {
  OpenComm* const open = as(comm, CommKind::kColl);
  if (open == nullptr) return fail(not_a(CommKind::kColl, comm));
  if (request == nullptr) return fail(null_argument("request"));
  *request = nullptr;
  Operation operation{.send = send, .receive = receive, .count = count};
  if (!supported_pair(type, op)) return fail(bad_allreduce(operation, type, op));
  operation.type = *type_of(type);
  operation.op = *op_of(op);
  const size_t width = element_bytes(operation.type);
  if (count > PTRDIFF_MAX / width) {
    return fail(make_error(Status::kInvalid, 0,
                           "iallreduce of %zd elements of %zu bytes: no memory holds that many",
                           static_cast<ssize_t>(count), width));
  }
  if (!covers(send_mhandle, send, count * width) ||
      !covers(receive_mhandle, receive, count * width)) {
    return fail(bad_allreduce(operation, type, op));
  }
  const auto free = std::ranges::find(open->requests, nullptr, &CollRequest::owner);
  if (free == open->requests.end()) return {};
  const Status status = open->session->start(operation, &free->ticket);
  if (status == Status::kAgain) return {};
  if (status != Status::kOk) return fail(failure_of(*open));
  free->owner = open;
  *request = &*free;
  return {};
}

// Host memory is visible to the GPU without a flush (NCCL calls this for GPU memory only).
Result<void> iflush(void* comm, void* /*data*/, int /*bytes*/, void* /*mhandle*/, void** request) {
  if (as(comm, CommKind::kColl) == nullptr) return fail(not_a(CommKind::kColl, comm));
  if (request == nullptr) return fail(null_argument("request"));
  *request = nullptr;
  return {};
}

Result<void> test(void* request, int* done, int* size) {
  auto* const open = static_cast<CollRequest*>(request);
  if (open == nullptr || open->owner == nullptr) {
    return fail(make_error(Status::kInvalid, 0,
                           "request %p is not open: test said already that it is done", request));
  }
  if (done == nullptr) return fail(null_argument("done"));
  *done = 0;
  bool ended = false;
  if (open->owner->session->test(open->ticket, &ended) != Status::kOk) {
    return fail(failure_of(*open->owner));
  }
  if (!ended) return {};
  *done = 1;
  if (size != nullptr) *size = 0;  // NCCL only traces it
  open->owner = nullptr;
  return {};
}

// v11
ResultCode init(void** context, uint64_t comm_id, nccl::Logger logger) noexcept {
  return api_call("init", [&] { return init_context(context, comm_id, nullptr, logger); });
}

// The properties are those of the same device in ncclNet, except that the switch and the ring take
// host memory only.
template <typename Properties>
ResultCode get_properties(int device, Properties* to) noexcept {
  const ResultCode code = table::get_properties(device, to);
  if (code == nccl::kSuccess) to->pointer_support = nccl::kPointerHost;
  return code;
}

ResultCode listen(int device, void* handle, void** listen_comm) noexcept {
  return api_call("listen", [&] {
    return plugin::listen(CommKind::kCollListen, device, handle, listen_comm,
                          {.host_memory = true});
  });
}

// v11
ResultCode listen(void* context, int device, void* handle, void** listen_comm) noexcept {
  return api_call("listen", [&] {
    return plugin::listen(CommKind::kCollListen, device, handle, listen_comm,
                          {.traffic_class = traffic_class_of(context), .host_memory = true});
  });
}

// int before v8
template <typename Size>
ResultCode reg_mr(void* comm, void* data, Size bytes, int type, void** mhandle) noexcept {
  return api_call("regMr", [&] {
    return register_memory(comm, data, static_cast<size_t>(bytes), type, mhandle);
  });
}

// int before v9
template <typename Count>
ResultCode iallreduce(void* comm, void* send_data, void* recv_data, Count count,
                      nccl::DataType type, nccl::ReduceOp op, void* send_mhandle,
                      void* recv_mhandle, void** request) noexcept {
  return api_call("iallreduce", [&] {
    return start(comm, send_data, recv_data, static_cast<size_t>(count), type, op, send_mhandle,
                 recv_mhandle, request);
  });
}

template <typename Table>
constexpr Table make_table() {
  Table table{};  // iallgather and ireducescatter, of v8, stay NULL (abi/collnet_tables.h)
  table.name = kPluginName;
  table.init = init;
  table.devices = api_function<"devices", devices>;
  table.get_properties = get_properties;
  table.listen = listen;
  table.connect = api_function<"connect", connect>;
  table.reduce_support = api_function<"reduceSupport", reduce_support>;
  table.reg_mr = reg_mr;
  table.reg_mr_dma_buf = api_function<"regMrDmaBuf", register_dma_buf>;
  table.dereg_mr = api_function<"deregMr", deregister_memory>;
  table.iallreduce = iallreduce;
  table.iflush = api_function<"iflush", iflush>;
  table.test = api_function<"test", test>;
  table.close_coll = api_function<"closeColl", close_comm<CommKind::kColl>>;
  table.close_listen = api_function<"closeListen", close_comm<CommKind::kCollListen>>;
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
