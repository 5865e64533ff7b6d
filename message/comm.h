// The two ends of a link as NCCL's proxy uses them: SendComm and RecvComm, and their set-up.
//
// Threads: one thread (NCCL's service thread) calls Listener::accept and Connector::step, and
// destroys comms. One thread at a time (NCCL's progress thread) calls isend, irecv and test of one
// comm. Any thread may register and release memory meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "devices/devices.h"

namespace slime {

inline constexpr size_t kHandleBytes = 128;  // NCCL_NET_HANDLE_MAXSIZE since NCCL 2.12
inline constexpr int kMaxReceives = 8;       // receives in one group: maxRecvs
inline constexpr int kMaxRequests = 32;      // NCCL_NET_MAX_REQUESTS, per comm
using Handle = std::array<std::byte, kHandleBytes>;

class Comm;

// A request of a comm's pool. It is in use from isend or irecv until test reports it done.
class Request {
 public:
  Comm& comm() const { return *comm_; }

 protected:
  explicit Request(Comm* comm) : comm_(comm) {}
  ~Request() = default;

 private:
  Comm* const comm_;
};

class Comm {
 public:
  virtual ~Comm() = default;
  // Moves the comm's works and says whether this request is done. `sizes` may be nullptr; for a
  // receive it has one entry for each grouped receive, and is written only when done. Errors are
  // permanent.
  virtual Status test(Request* request, bool* done, size_t* sizes) = 0;
  // Moves the comm's works as test does, without a request. Returns the error of a failed link.
  virtual Status progress() = 0;
  virtual Device& device() const = 0;
  virtual const Error& failure() const = 0;  // valid once a call returned an error
  virtual std::string peer_name() const = 0;
};

class SendComm : public Comm {
 public:
  // kOk with *request == nullptr: not possible now; call again with the same arguments. A send that
  // nobody will receive, as the link has failed, begins all the same, and test returns the failure:
  // so NCCL's own transports do it. isend fails where it meets a receive that is too small, where
  // no receive comes in time, and where all requests wait on a failed link.
  virtual Status isend(const void* data, size_t bytes, int tag, const MemoryRegion* region,
                       Request** request) = 0;
};

struct Receive {
  void* data = nullptr;
  size_t capacity = 0;
  int tag = 0;
  const MemoryRegion* region = nullptr;
};

class RecvComm : public Comm {
 public:
  // At most kMaxReceives. `may_complete_early`: NCCL_NET_OPTIONAL_RECV_COMPLETION.
  virtual Status irecv(std::span<const Receive> receives, bool may_complete_early,
                       Request** request) = 0;
  // Called after receives into device memory are done and before the device reads the memory;
  // `data` lies in one of them. kOk with *request == nullptr: there is nothing to wait for.
  virtual Status flush(const void* data, const MemoryRegion* region, Request** request) = 0;
  // Whether an eager message of this tag has come for which no receive is posted.
  virtual bool has_unexpected(int tag) = 0;
};

// A communicator's options for its links.
struct CommOptions {
  int traffic_class = kNoTrafficClass;  // of the packets that this end sends
  bool host_memory = false;  // receives are into host memory only, whatever the device takes

  // The user's setting comes before the communicator's.
  int chosen_class(const Settings& settings) const {
    return settings.traffic_class != kNoTrafficClass ? settings.traffic_class : traffic_class;
  }
};

class Listener {
 public:
  virtual ~Listener() = default;
  static Result<std::unique_ptr<Listener>> open(Devices& devices, int device, Handle* handle,
                                                const CommOptions& options = {});
  // nullptr: no peer is connected yet; call again. Further calls accept further peers.
  virtual Result<std::unique_ptr<RecvComm>> accept() = 0;
};

class Connector {
 public:
  virtual ~Connector() = default;
  // Fails at once if no Listener of a compatible version made the handle.
  static Result<std::unique_ptr<Connector>> open(Devices& devices, int device, const Handle& handle,
                                                 const CommOptions& options = {});
  virtual Result<std::unique_ptr<SendComm>> step() = 0;  // nullptr: not yet, call again
};

}  // namespace slime
