// A network plugin as slime-perf sees it: NCCL's calls, whatever the version of the table.
// Data-path calls are as thin as they can be; all versions differ only in types and in arguments
// that we always pass alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugin/abi/types.h"

namespace slime::perf {

struct NetProperties {
  std::string name, pci_path;
  uint64_t guid = 0;
  int pointer_support = 0;
  int speed_mbps = 0;
  int port = 0;
  float latency_us = 0;
  int max_comms = 0;
  int max_receives = 1;
  bool on_host = true;                     // no device offload
  size_t max_p2p_bytes = size_t{1} << 30;  // what NCCL assumes for tables before v9
};

class NetApi {
 public:
  virtual ~NetApi() = default;
  virtual int version() const = 0;
  virtual const char* name() const = 0;
  // NCCL passes *request = 1 to an irecv whose completion it will not look at (v9 and later).
  virtual bool optional_completion() const = 0;

  virtual nccl::ResultCode init(nccl::Logger logger, uint64_t comm_id) = 0;
  virtual nccl::ResultCode finalize() = 0;  // nothing before v11
  virtual nccl::ResultCode devices(int* count) = 0;
  virtual nccl::ResultCode properties(int device, NetProperties* properties) = 0;

  virtual nccl::ResultCode listen(int device, void* handle, void** listen_comm) = 0;
  virtual nccl::ResultCode connect(int device, void* handle, void** send_comm) = 0;
  virtual nccl::ResultCode accept(void* listen_comm, void** recv_comm) = 0;
  virtual nccl::ResultCode reg_mr(void* comm, void* data, size_t bytes, void** mhandle) = 0;
  virtual nccl::ResultCode dereg_mr(void* comm, void* mhandle) = 0;
  virtual nccl::ResultCode close_send(void* comm) = 0;
  virtual nccl::ResultCode close_recv(void* comm) = 0;
  virtual nccl::ResultCode close_listen(void* comm) = 0;

  virtual nccl::ResultCode isend(void* comm, void* data, size_t bytes, int tag, void* mhandle,
                                 void** request) = 0;
  virtual nccl::ResultCode irecv(void* comm, void* data, size_t bytes, int tag, void* mhandle,
                                 void** request) = 0;
  virtual nccl::ResultCode test(void* request, int* done, int* sizes) = 0;
  virtual void receive_consumed(void* comm, void* request) = 0;  // from v7; may do nothing
};

const char* result_name(nccl::ResultCode code);

// The logger we give to plugins: NCCL_DEBUG=WARN (the default here), INFO, TRACE, NONE to stderr.
void plugin_log(nccl::LogLevel level, unsigned long flags, const char* file, int line,
                const char* format, ...);
void set_log_rank(int rank);
bool warnings_are_shown();
std::string why_no_devices();  // as the plugin said it; empty: it did not
std::string last_warning();    // what NCCL would return from ncclGetLastError

}  // namespace slime::perf
