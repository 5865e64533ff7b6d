// The functions that the tables of all versions of the net API call, after they have adapted the
// types. Arguments come unchecked from NCCL; these functions check everything that can be checked.
//
// Threads: NCCL's, several at a time. State has the rules.
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
Error null_argument(const char* name);  // these three run only after a mistake of the caller
Error not_a(CommKind kind, const void* comm);
Error not_a(const char* what, const void* comm);

Result<void> init(nccl::Logger logger);  // tables before v11
Result<void> init_context(void** context, uint64_t comm_id, const nccl::NetCommConfig* config,
                          nccl::Logger logger);
Result<void> finalize(void* context);
Result<void> devices(int* count);

// The device with this number, or an error that says which numbers there are.
Result<Device*> find_device(int index);
const char* keep_for_ever(const std::string& text);  // valid until the process ends
int pointer_support(const DeviceProperties& known);
Result<void> make_virtual_device(int* device, const int* members, int count);

// The traffic class in a communicator's configuration (nullptr: it has none). A value that is no
// TOS byte causes one warning and counts as undefined.
int checked_traffic_class(const nccl::NetCommConfig* config);
int traffic_class_of(const void* context);  // of the communicator with this context

// net_connect.cc
// Traffic classes come from checked_traffic_class(). Each end of a link marks the packets that it
// sends. `kind`: kListen or kCollListen.
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
// `offset`: the beginning of the memory in the DMA-BUF `fd`.
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
// `may_complete_early`: NCCL does not need the size of the message (kOptionalReceiveCompletion).
template <typename Size>  // int or size_t
Result<void> irecv(void* recv_comm, const ReceiveArguments& arguments, const Size* sizes,
                   bool may_complete_early, void** request);
struct FlushArguments {
  int n = 0;  // receives in the group
  void** data = nullptr;
  const int* sizes = nullptr;  // bytes received
  void** mhandles = nullptr;
};
Result<void> iflush(void* recv_comm, const FlushArguments& arguments, void** request);
Result<void> test(void* request, int* done, int* sizes);

// regMr and deregMr for any kind of comm on this device (net_memory.cc). `type` decides the kind of
// the range.
Result<void> register_on(Device& device, MemoryRange range, int type, void** mhandle);
Result<void> deregister_on(Device& device, void* mhandle);

// The failure of a connection. Its sentence is empty if it was logged before.
Error failure_of(const Comm& comm);

}  // namespace slime::plugin
