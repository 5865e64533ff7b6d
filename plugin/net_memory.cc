// Registration of memory. An mhandle is the engine's MemoryRegion: it is registered on all rails of
// the device, and all comms of the device share it.
#include <unistd.h>

#include "plugin/net.h"

namespace slime::plugin {
namespace {

const char* kind_name(int type) { return type == nccl::kPointerCuda ? "CUDA" : "host"; }

// A DMA-BUF is not checked here: register_dma_buf() has checked that the rails take one.
Result<MemoryKind> kind_for(const Device& device, int type, bool is_dma_buf) {
  if (type != nccl::kPointerHost && type != nccl::kPointerCuda) {
    return fail(make_error(Status::kInvalid, 0,
                           "memory type %d is unknown: 1 (host) and 2 (CUDA) are possible", type));
  }
  const auto kind = type == nccl::kPointerHost ? MemoryKind::kHost : MemoryKind::kCuda;
  if (!is_dma_buf && !device.properties().takes(kind)) {
    return fail(make_error(Status::kUnsupported, 0,
                           "device %s cannot register %s memory; its ptrSupport says so, and NCCL "
                           "stages through host memory instead",
                           device.properties().name.c_str(), kind_name(type)));
  }
  return kind;
}

// The range must not be empty or wrap around. A negative int of older tables is too large here.
bool sane_range(const void* data, size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(data);
  return bytes > 0 && static_cast<ssize_t>(bytes) > 0 && start + bytes > start;
}

const OpenComm* find_link(const void* comm) {
  const OpenComm* const send = State::get().find(comm, CommKind::kSend);
  return send != nullptr ? send : State::get().find(comm, CommKind::kRecv);
}

}  // namespace

Result<void> register_memory(void* comm, void* data, size_t bytes, int type, void** mhandle) {
  const OpenComm* const link = find_link(comm);
  if (link == nullptr) return fail(not_a("sendComm or recvComm", comm));
  return register_on(*link->device, {data, bytes}, type, mhandle);
}

Result<void> register_on(Device& device, MemoryRange range, int type, void** mhandle) {
  if (range.address == nullptr) return fail(null_argument("data"));
  if (mhandle == nullptr) return fail(null_argument("mhandle"));
  if (!sane_range(range.address, range.bytes)) {
    return fail(make_error(Status::kInvalid, 0, "cannot register %zd bytes at %p: not a range",
                           static_cast<ssize_t>(range.bytes), range.address));
  }
  const auto kind = kind_for(device, type, range.dma_buf >= 0);
  if (!kind) return fail(kind.error());
  range.kind = *kind;
  const auto region = device.memory().acquire(range);
  if (!region) return fail(region.error());
  *mhandle = const_cast<MemoryRegion*>(*region);
  return {};
}

// NCCL calls this only where ptrSupport has the DMA-BUF bit.
Result<void> register_dma_buf(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                              int fd, void** mhandle) {
  const OpenComm* const link = find_link(comm);
  if (link == nullptr) return fail(not_a("sendComm or recvComm", comm));
  Device& device = *link->device;
  if (mhandle == nullptr) return fail(null_argument("mhandle"));
  if (!device.properties().dma_buf || fd < 0) {
    return fail(
        make_error(Status::kUnsupported, 0,
                   "device %s cannot register DMA-BUF %d (%zu bytes at %p, type %d): %s; use regMr",
                   device.properties().name.c_str(), fd, bytes, data, type,
                   fd < 0 ? "that is no file descriptor"
                          : "not all of its rails take one, and its ptrSupport says so"));
  }
  return register_on(device, {data, bytes, MemoryKind::kHost, fd, offset}, type, mhandle);
}

// After an error NCCL may call this while requests are open. When it returns, the engine does not
// use the range any more, because NCCL frees the memory next.
Result<void> deregister_memory(void* comm, void* mhandle) {
  const OpenComm* const link = find_link(comm);
  if (link == nullptr) return fail(not_a("sendComm or recvComm", comm));
  return deregister_on(*link->device, mhandle);
}

// NULL is what NCCL has of a registration that failed.
Result<void> deregister_on(Device& device, void* mhandle) {
  if (mhandle == nullptr) return {};
  if (device.memory().release(static_cast<const MemoryRegion*>(mhandle))) return {};
  return fail(make_error(Status::kInvalid, 0,
                         "%p is not an mhandle of device %s: it was deregistered already, or "
                         "belongs to another device",
                         mhandle, device.properties().name.c_str()));
}

}  // namespace slime::plugin
