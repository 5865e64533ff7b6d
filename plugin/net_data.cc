// The data path: it checks the arguments, calls the engine, and translates the result. It takes no
// lock and allocates nothing, unless a call fails.
#include <array>
#include <climits>

#include "plugin/net.h"

namespace slime::plugin {
namespace {

// Finds the reason why transferable() is false. The order of the checks decides which reason the
// user reads.
[[gnu::cold]] Error out_of_region(const Device& device, const void* data, size_t bytes,
                                  const MemoryRegion* region) {
  const char* const name = device.properties().name.c_str();
  if (bytes > kMaxMessageBytes) {
    return make_error(Status::kInvalid, 0,
                      "device %s: cannot transfer %zd bytes: 0 to %zu are possible", name,
                      static_cast<ssize_t>(bytes), kMaxMessageBytes);
  }
  if (region == nullptr) {
    return make_error(Status::kInvalid, 0, "device %s: mhandle is NULL for %zu bytes at %p", name,
                      bytes, data);
  }
  if (region->contains(data, bytes)) {
    return make_error(Status::kInvalid, 0,
                      "device %s: mhandle %p was registered with another device", name,
                      static_cast<const void*>(region));
  }
  return make_error(
      Status::kInvalid, 0,
      "device %s: %zu bytes at %p are outside the registered %zu bytes at %p: pass the "
      "mhandle that regMr returned for this buffer",
      name, bytes, data, region->bytes, static_cast<void*>(region->address));
}

// The whole transfer must lie in the registered range, and the range must be registered on the
// rails of this device. Otherwise the NIC would use a key of another device.
bool transferable(const Device& device, const void* data, size_t bytes,
                  const MemoryRegion* region) {
  if (bytes == 0) return true;  // an empty chunk touches nothing, whatever its pointer
  return bytes <= kMaxMessageBytes && region != nullptr && region->contains(data, bytes) &&
         region->keys.size() == device.rails().size();
}

[[gnu::cold]] Error bad_receive(const ReceiveArguments& arguments, const void* sizes,
                                const void* request) {
  if (request == nullptr) return null_argument("request");
  if (arguments.n < 1 || arguments.n > kMaxReceives) {
    return make_error(Status::kInvalid, 0,
                      "a group of %d receives: 1 to %d are possible (maxRecvs)", arguments.n,
                      kMaxReceives);
  }
  if (arguments.data == nullptr) return null_argument("data");
  if (sizes == nullptr) return null_argument("sizes");
  if (arguments.tags == nullptr) return null_argument("tags");
  return null_argument("mhandles");
}

// Marks the entries that the engine did not write.
constexpr size_t kNotWritten = SIZE_MAX;
using Sizes = std::array<size_t, kMaxReceives>;

// NCCL takes sizes as int in every version. Entries that the engine did not write stay as they are.
Result<void> copy_sizes(const Sizes& from, int* to) {
  for (size_t i = 0; i < from.size() && from[i] != kNotWritten; ++i) {
    if (from[i] > INT_MAX) {
      return fail(
          make_error(Status::kInternal, 0, "a message of %zu bytes does not fit an int", from[i]));
    }
    to[i] = static_cast<int>(from[i]);
  }
  return {};
}

// The first receive of the group that wrote into device memory; -1: none did.
Result<int> first_in_device_memory(const Device& device, const FlushArguments& arguments) {
  if (!device.properties().takes_device_memory()) return -1;
  if (arguments.n < 1 || arguments.n > kMaxReceives) {
    return fail(make_error(Status::kInvalid, 0, "a flush of %d receives: 1 to %d are possible",
                           arguments.n, kMaxReceives));
  }
  if (arguments.data == nullptr) return fail(null_argument("data"));
  if (arguments.sizes == nullptr) return fail(null_argument("sizes"));
  if (arguments.mhandles == nullptr) return fail(null_argument("mhandles"));
  for (int i = 0; i < arguments.n; ++i) {
    const auto* const region = static_cast<const MemoryRegion*>(arguments.mhandles[i]);
    if (arguments.sizes[i] <= 0 || region == nullptr || region->kind == MemoryKind::kHost) continue;
    if (transferable(device, arguments.data[i], 1, region)) return i;
    return fail(out_of_region(device, arguments.data[i], 1, region));
  }
  return -1;
}

}  // namespace

// *request is NULL if the engine cannot take the send now; NCCL then calls again.
Result<void> isend(void* send_comm, const void* data, size_t bytes, int tag, void* mhandle,
                   void** request) {
  OpenComm* const comm = as(send_comm, CommKind::kSend);
  if (comm == nullptr) return fail(not_a(CommKind::kSend, send_comm));
  if (request == nullptr) return fail(null_argument("request"));
  const auto* const region = static_cast<const MemoryRegion*>(mhandle);
  if (!transferable(*comm->device, data, bytes, region)) {
    return fail(out_of_region(*comm->device, data, bytes, region));
  }
  Request* posted = nullptr;
  const Status status = comm->send->isend(data, bytes, tag, region, &posted);
  if (status != Status::kOk && status != Status::kAgain) return fail(failure_of(*comm->send));
  *request = posted;
  return {};
}

template <typename Size>
Result<void> irecv(void* recv_comm, const ReceiveArguments& arguments, const Size* sizes,
                   bool may_complete_early, void** request) {
  OpenComm* const comm = as(recv_comm, CommKind::kRecv);
  if (comm == nullptr) return fail(not_a(CommKind::kRecv, recv_comm));
  // One check for all arguments keeps the hot path short; the error path finds the wrong one.
  const bool complete = request && arguments.data && sizes && arguments.tags && arguments.mhandles;
  if (!complete || arguments.n < 1 || arguments.n > kMaxReceives) {
    return fail(bad_receive(arguments, sizes, request));
  }
  std::array<Receive, kMaxReceives> receives;
  for (int i = 0; i < arguments.n; ++i) {
    Receive& receive = receives[static_cast<size_t>(i)];
    receive.data = arguments.data[i];
    receive.capacity = static_cast<size_t>(sizes[i]);
    receive.tag = arguments.tags[i];
    receive.region = static_cast<const MemoryRegion*>(arguments.mhandles[i]);
    if (!transferable(*comm->device, receive.data, receive.capacity, receive.region)) {
      return fail(out_of_region(*comm->device, receive.data, receive.capacity, receive.region));
    }
  }
  // kAgain: no request is free, or no rail has room. *request is NULL then, and NCCL calls again.
  Request* posted = nullptr;
  const std::span<const Receive> group(receives.data(), static_cast<size_t>(arguments.n));
  const Status status = comm->recv->irecv(group, may_complete_early, &posted);
  if (status != Status::kOk && status != Status::kAgain) return fail(failure_of(*comm->recv));
  *request = posted;
  return {};
}

template Result<void> irecv<int>(void*, const ReceiveArguments&, const int*, bool, void**);
template Result<void> irecv<size_t>(void*, const ReceiveArguments&, const size_t*, bool, void**);

// Host memory is visible when test() has reported the receive, so it needs no flush. One flush
// covers everything that the comm has received.
Result<void> iflush(void* recv_comm, const FlushArguments& arguments, void** request) {
  OpenComm* const comm = as(recv_comm, CommKind::kRecv);
  if (comm == nullptr) return fail(not_a(CommKind::kRecv, recv_comm));
  if (request == nullptr) return fail(null_argument("request"));
  *request = nullptr;
  const auto first = first_in_device_memory(*comm->device, arguments);
  if (!first) return fail(first.error());
  if (*first < 0) return {};
  const auto* const region = static_cast<const MemoryRegion*>(arguments.mhandles[*first]);
  Request* begun = nullptr;
  if (comm->recv->flush(arguments.data[*first], region, &begun) != Status::kOk) {
    return fail(failure_of(*comm->recv));
  }
  *request = begun;
  return {};
}

// After a failure the engine still reports complete requests; for the others it returns the error.
Result<void> test(void* request, int* done, int* sizes) {
  if (request == nullptr) return fail(null_argument("request"));
  if (done == nullptr) return fail(null_argument("done"));
  auto* const open = static_cast<Request*>(request);
  Comm& comm = open->comm();  // the request may be gone once test reports it done
  bool finished = false;
  Sizes actual;
  actual.fill(kNotWritten);
  const Status status = comm.test(open, &finished, sizes ? actual.data() : nullptr);
  if (status != Status::kOk && status != Status::kAgain) return fail(failure_of(comm));
  if (finished && sizes != nullptr) {
    Result<void> copied = copy_sizes(actual, sizes);
    if (!copied) return copied;
  }
  *done = finished ? 1 : 0;
  return {};
}

}  // namespace slime::plugin
