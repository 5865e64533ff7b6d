// The net API as one version sees it: what the tables of all versions call after adapting types.
// Arguments come unchecked from NCCL; everything that can be checked is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "plugin/abi/types.h"
#include "plugin/state.h"

namespace slime::plugin {

// NCCL gives plugins before v9 this limit (MAX_NET_SIZE), and test() reports sizes as int in every
// version, so a larger message could not be reported.
inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;
inline constexpr int kMaxComms = 65536;

// net.cc
Error null_argument(const char* name);  // these three are cold
Error not_a(CommKind kind, const void* comm);
Error not_a(const char* what, const void* comm);

Result<void> init(nccl::Logger logger);  // tables before v11
Result<void> init_context(void** context, uint64_t comm_id, const nccl::NetCommConfig* config,
                          nccl::Logger logger);
Result<void> finalize(void* context);
Result<void> devices(int* count);

// The device of this number, or an error that says which there are.
Result<Device*> find_device(int index);
const char* keep_for_ever(const std::string& text);  // as long as the process lives
int pointer_support(const DeviceProperties& known);
Result<void> make_virtual_device(int* device, const int* members, int count);

// What a communicator's configuration says (nullptr: it has none); a value that is no TOS byte is
// warned of, once, and counts as undefined.
int checked_traffic_class(const nccl::NetCommConfig* config);
int traffic_class_of(const void* context);  // of the communicator that init made `context` for

// net_connect.cc
// Traffic classes are as checked_traffic_class() returned them. The two ends of a link each mark
// what they send. `kind`: kListen or kCollListen.
Result<void> listen(CommKind kind, int device, void* handle, void** listen_comm,
                    const CommOptions& options);
Result<void> connect(int device, void* handle, void** send_comm, int traffic_class);
Result<void> accept(void* listen_comm, void** recv_comm);
template <CommKind kKind>
Result<void> close_comm(void* comm) {
  if (State::get().close(comm, kKind)) return {};
  return fail(not_a(kKind, comm));
}

// net_memory.cc. A negative int arrives here as a size beyond any limit.
Result<void> register_memory(void* comm, void* data, size_t bytes, int type, void** mhandle);
// `offset`: where the memory begins in the DMA-BUF `fd`.
Result<void> register_dma_buf(void* comm, void* data, size_t bytes, int type, uint64_t offset,
                              int fd, void** mhandle);
Result<void> deregister_memory(void* comm, void* mhandle);

// net_data.cc
struct ReceiveArguments {
  int n = 0;
  void** data = nullptr;
  const int* tags = nullptr;
  void** mhandles = nullptr;
};
Result<void> isend(void* send_comm, const void* data, size_t bytes, int tag, void* mhandle,
                   void** request);
// `may_complete_early`: NCCL does not need to know how much arrived (kOptionalReceiveCompletion).
template <typename Size>  // int or size_t
Result<void> irecv(void* recv_comm, const ReceiveArguments& arguments, const Size* sizes,
                   bool may_complete_early, void** request);
struct FlushArguments {
  int n = 0;  // receives in the group
  void** data = nullptr;
  const int* sizes = nullptr;  // received
  void** mhandles = nullptr;
};
Result<void> iflush(void* recv_comm, const FlushArguments& arguments, void** request);
Result<void> test(void* request, int* done, int* sizes);

// regMr and deregMr of any kind of comm on this device (net_memory.cc). The kind of the range
// follows from `type`.
Result<void> register_on(Device& device, MemoryRange range, int type, void** mhandle);
Result<void> deregister_on(Device& device, void* mhandle);

// A connection's failure, without its sentence if it was logged before.
Error failure_of(const Comm& comm);

}  // namespace slime::plugin
