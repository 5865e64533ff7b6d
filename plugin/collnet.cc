#include "plugin/collnet.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "plugin/net_check.h"
#include "plugin/state.h"

namespace slime::plugin::coll {
namespace {

std::optional<number::DataType> type_of(nccl::DataType type) {
  using number::DataType;
  switch (type) {
    case nccl::kInt8:
      return DataType::kInt8;
    case nccl::kUint8:
      return DataType::kUint8;
    case nccl::kInt32:
      return DataType::kInt32;
    case nccl::kUint32:
      return DataType::kUint32;
    case nccl::kInt64:
      return DataType::kInt64;
    case nccl::kUint64:
      return DataType::kUint64;
    case nccl::kFloat16:
      return DataType::kFloat16;
    case nccl::kFloat32:
      return DataType::kFloat32;
    case nccl::kBfloat16:
      return DataType::kBfloat16;
    default:
      return std::nullopt;
  }
}

std::optional<sap::Op> op_of(nccl::ReduceOp op) {
  switch (op) {
    case nccl::kSum:
      return sap::Op::kSum;
    case nccl::kMax:
      return sap::Op::kMax;
    case nccl::kMin:
      return sap::Op::kMin;
    default:
      return std::nullopt;
  }
}

bool supported_pair(nccl::DataType type, nccl::ReduceOp op) {
  const auto known_type = type_of(type);
  const auto known_op = op_of(op);
  return known_type && known_op && Payload::supports(*known_type, *known_op);
}

bool covers(const void* mhandle, const void* data, size_t bytes) {
  const auto* const region = static_cast<const MemoryRegion*>(mhandle);
  return bytes == 0 || (region != nullptr && region->contains(data, bytes));
}

// The data path's way from a pointer of NCCL's to the object: one comparison instead of a lookup.
CollObject* as_comm(void* comm) {
  auto* const object = static_cast<CollObject*>(comm);
  return object != nullptr && object->session ? object : nullptr;
}

Error failure_of(CollObject& object) {
  Error error = object.session->failure();
  if (std::exchange(object.failure_logged, true)) error.what.clear();
  return error;
}

[[gnu::cold]] Error bad_allreduce(const AllreduceArguments& arguments) {
  return make_error(Status::kInvalid, 0,
                    "iallreduce of %zu elements of type %d, operation %d, from %p to %p: "
                    "reduceSupport did not promise it, or a buffer is not inside its mhandle's "
                    "registration",
                    arguments.count, arguments.type, arguments.op, arguments.send,
                    arguments.receive);
}

// A negative int of the older tables is shown as such.
[[gnu::cold]] Error impossible_count(const AllreduceArguments& arguments, size_t width) {
  return make_error(Status::kInvalid, 0,
                    "iallreduce of %zd elements of %zu bytes: no memory holds that many",
                    static_cast<ssize_t>(arguments.count), width);
}

// A training run must not go on with results that mean nothing.
bool is_for_measurement(const Settings& settings) {
  if (settings.debug_mode.empty() || settings.debug_mode == "normal") return false;
  SLIME_WARN(
      "no CollNet: NCCL_SLIME_DEBUG_MODE=%s is for measurements with slime/aggregation.h, "
      "not for NCCL; unset it",
      settings.debug_mode.c_str());
  return true;
}

}  // namespace

Result<void> devices(int* count) {
  auto known = plugin::devices(count);
  if (!known) return known;
  const Fabric* const fabric = State::get().fabric();
  if (fabric == nullptr || fabric->settings().switch_address.empty()) *count = 0;
  if (*count > 0 && is_for_measurement(fabric->settings())) *count = 0;
  return {};
}

Result<void> listen(int index, void* handle, void** listen_comm, int traffic_class) {
  if (handle == nullptr) return fail(null_argument("handle"));
  if (listen_comm == nullptr) return fail(null_argument("listenComm"));
  const auto device = find_device(index);
  if (!device) return fail(device.error());
  Handle made{};
  auto object = std::make_unique<CollObject>();
  object->options = {.traffic_class = traffic_class, .host_memory = true};
  auto listener = Listener::open(*State::get().fabric(), index, &made, object->options);
  if (!listener) return fail(std::move(listener.error()));
  object->listener = std::move(*listener);
  object->device = *device;
  object->device_index = index;
  memcpy(handle, made.data(), made.size());
  *listen_comm = State::get().adopt(std::move(object));
  return {};
}

Result<void> connect(void* handles[], int ranks, int rank, void* listen_comm, void** coll_comm) {
  if (coll_comm == nullptr) return fail(null_argument("collComm"));
  *coll_comm = nullptr;
  CollObject* const listening = State::get().find_coll(listen_comm);
  if (listening == nullptr || !listening->listener) return fail(not_a("listenComm", listen_comm));
  // NCCL forgets the listenComm when this fails (src/transport/coll_net.cc, sharedConnect).
  const auto end = [&](Error error) {
    State::get().close_coll(listen_comm);
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
  auto session = Session::connect(*State::get().fabric(), listening->device_index,
                                  *listening->listener, all, static_cast<uint32_t>(rank),
                                  policy != nullptr ? policy->digest() : 0, listening->options);
  if (!session) return end(std::move(session.error()));
  auto object = std::make_unique<CollObject>();
  object->session = std::move(*session);
  object->device = listening->device;
  object->device_index = listening->device_index;
  *coll_comm = State::get().adopt(std::move(object));
  return {};
}

Result<void> reduce_support(nccl::DataType type, nccl::ReduceOp op, int* supported) {
  if (supported == nullptr) return fail(null_argument("supported"));
  *supported = supported_pair(type, op) ? 1 : 0;
  return {};
}

Result<void> register_memory(void* comm, void* data, size_t bytes, int type, void** mhandle) {
  CollObject* const object = State::get().find_coll(comm);
  if (object == nullptr || !object->session) return fail(not_a("collComm", comm));
  if (type != nccl::kPointerHost) {
    return fail(make_error(Status::kUnsupported, 0,
                           "CollNet takes host memory only, not %zu bytes at %p of type %d; its "
                           "ptrSupport says so",
                           bytes, data, type));
  }
  return register_on(*object->device, {data, bytes}, type, mhandle);
}

Result<void> register_dma_buf(void* comm, size_t bytes, int fd) {
  CollObject* const object = State::get().find_coll(comm);
  if (object == nullptr || !object->session) return fail(not_a("collComm", comm));
  return fail(make_error(Status::kUnsupported, 0,
                         "CollNet takes host memory only, not DMA-BUF %d of %zu bytes", fd, bytes));
}

Result<void> deregister_memory(void* comm, void* mhandle) {
  CollObject* const object = State::get().find_coll(comm);
  if (object == nullptr || !object->session) return fail(not_a("collComm", comm));
  return deregister_on(*object->device, mhandle);
}

Result<void> iallreduce(void* comm, const AllreduceArguments& arguments, void** request) {
  CollObject* const object = as_comm(comm);
  if (object == nullptr) return fail(not_a("collComm", comm));
  if (request == nullptr) return fail(null_argument("request"));
  *request = nullptr;
  if (!supported_pair(arguments.type, arguments.op)) return fail(bad_allreduce(arguments));
  const Operation operation{.send = arguments.send,
                            .receive = arguments.receive,
                            .count = arguments.count,
                            .type = *type_of(arguments.type),
                            .op = *op_of(arguments.op)};
  const size_t width = number::element_bytes(operation.type);
  if (arguments.count > PTRDIFF_MAX / width) return fail(impossible_count(arguments, width));
  const size_t bytes = arguments.count * width;
  if (!covers(arguments.send_mhandle, arguments.send, bytes) ||
      !covers(arguments.receive_mhandle, arguments.receive, bytes)) {
    return fail(bad_allreduce(arguments));
  }
  const auto free = std::find_if(object->requests.begin(), object->requests.end(),
                                 [](const CollRequest& one) { return one.owner == nullptr; });
  if (free == object->requests.end()) return {};
  const Status status = object->session->start(operation, &free->ticket);
  if (status == Status::kAgain) return {};
  if (status != Status::kOk) return fail(failure_of(*object));
  free->owner = object;
  *request = &*free;
  return {};
}

// Host memory is visible to the GPU without a flush (NCCL calls this for GPU memory only).
Result<void> iflush(void* comm, void** request) {
  if (as_comm(comm) == nullptr) return fail(not_a("collComm", comm));
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

Result<void> close_coll(void* comm) {
  const CollObject* const object = State::get().find_coll(comm);
  if (object == nullptr || !object->session) return fail(not_a("collComm", comm));
  if (State::get().close_coll(comm)) return {};
  return fail(not_a("collComm", comm));
}

Result<void> close_listen(void* listen_comm) {
  const CollObject* const object = State::get().find_coll(listen_comm);
  if (object == nullptr || !object->listener) return fail(not_a("listenComm", listen_comm));
  if (State::get().close_coll(listen_comm)) return {};
  return fail(not_a("listenComm", listen_comm));
}

}  // namespace slime::plugin::coll
