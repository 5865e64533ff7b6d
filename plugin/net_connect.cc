// listen, connect, accept, close. None of them waits: NCCL's service thread interleaves the
// connects and accepts of many peers, so a call that waited would cause a deadlock (NCCL
// src/proxy.cc, progressOps).
#include <algorithm>
#include <cstring>
#include <utility>

#include "plugin/net.h"

namespace slime::plugin {
namespace {

// NCCL passes the same handle memory to every retry of a connect. Its last bytes, which the engine
// does not use, hold the number under which State keeps the attempt; 0: there is none yet. It is a
// number and no pointer, so that a forged handle refers to nothing.
constexpr size_t kReservedBytes = 16;
constexpr size_t kAttemptOffset = kHandleBytes - kReservedBytes;
static_assert(kHandleBytes == nccl::kHandleMaxBytes);

uint64_t attempt_of(const void* handle) {
  uint64_t attempt = 0;
  memcpy(&attempt, static_cast<const std::byte*>(handle) + kAttemptOffset, sizeof attempt);
  return attempt;
}

void set_attempt(void* handle, uint64_t attempt) {
  memset(static_cast<std::byte*>(handle) + kAttemptOffset, 0, kReservedBytes);
  memcpy(static_cast<std::byte*>(handle) + kAttemptOffset, &attempt, sizeof attempt);
}

Handle without_attempt(const void* handle) {
  Handle copy;
  memcpy(copy.data(), handle, copy.size());
  set_attempt(copy.data(), 0);
  return copy;
}

Result<std::unique_ptr<PendingConnect>> begin_connect(int device, const Handle& handle,
                                                      int traffic_class) {
  auto pending = std::make_unique<PendingConnect>();
  auto connector = Connector::open(*State::get().devices(), device, handle, {traffic_class});
  if (!connector) return fail(connector.error());
  pending->connector = std::move(*connector);
  pending->handle = handle;
  pending->device = device;
  return pending;
}

// The handle and the device must be those of the attempt. An attempt that belongs to another
// connect is put back.
Result<std::unique_ptr<PendingConnect>> continue_connect(int device, const Handle& handle,
                                                         uint64_t attempt) {
  auto pending = State::get().take(attempt);
  if (pending && pending->device == device && pending->handle == handle) return pending;
  // It belongs to another connect, which will take it.
  if (pending) State::get().park(std::move(pending));
  return fail(make_error(Status::kInvalid, 0,
                         "the handle was altered since listen made it, or belongs to an attempt to "
                         "connect that has ended (attempt %llu, device %d): pass the bytes that "
                         "listen returned, in memory that stays the same until connect is done",
                         static_cast<unsigned long long>(attempt), device));
}

}  // namespace

Result<void> listen(CommKind kind, int index, void* handle, void** listen_comm,
                    const CommOptions& options) {
  if (handle == nullptr) return fail(null_argument("handle"));
  if (listen_comm == nullptr) return fail(null_argument("listenComm"));
  const auto device = find_device(index);
  if (!device) return fail(device.error());
  auto comm = std::make_unique<OpenComm>(kind, *device, index);
  comm->options = options;
  Handle made{};
  auto listener = Listener::open(*State::get().devices(), index, &made, options);
  if (!listener) return fail(listener.error());
  comm->listener = std::move(*listener);
  set_attempt(made.data(), 0);
  *listen_comm = State::get().adopt(std::move(comm));
  memcpy(handle, made.data(), made.size());
  return {};
}

// Each call makes one step. Between two calls State owns the attempt, so that finalize can end it.
Result<void> connect(int index, void* handle, void** send_comm, int traffic_class) {
  if (handle == nullptr) return fail(null_argument("handle"));
  if (send_comm == nullptr) return fail(null_argument("sendComm"));
  const auto device = find_device(index);
  if (!device) return fail(device.error());
  const uint64_t attempt = attempt_of(handle);
  const Handle bytes = without_attempt(handle);
  auto pending = attempt == 0 ? begin_connect(index, bytes, traffic_class)
                              : continue_connect(index, bytes, attempt);
  if (!pending) return fail(pending.error());
  auto connected = (*pending)->connector->step();
  set_attempt(handle, 0);
  if (!connected) return fail(connected.error());
  if (*connected == nullptr) {
    *send_comm = nullptr;
    set_attempt(handle, State::get().park(std::move(*pending)));
    return {};
  }
  auto comm = std::make_unique<OpenComm>(CommKind::kSend, *device, index);
  comm->send = std::move(*connected);
  *send_comm = State::get().adopt(std::move(comm));
  return {};
}

Result<void> accept(void* listen_comm, void** recv_comm) {
  if (recv_comm == nullptr) return fail(null_argument("recvComm"));
  const OpenComm* const listening = State::get().find(listen_comm, CommKind::kListen);
  if (listening == nullptr) return fail(not_a(CommKind::kListen, listen_comm));
  auto accepted = listening->listener->accept();
  if (!accepted) return fail(accepted.error());
  if (*accepted == nullptr) {
    *recv_comm = nullptr;
    return {};
  }
  auto comm =
      std::make_unique<OpenComm>(CommKind::kRecv, listening->device, listening->device_index);
  comm->recv = std::move(*accepted);
  *recv_comm = State::get().adopt(std::move(comm));
  return {};
}

}  // namespace slime::plugin
