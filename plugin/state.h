// The plugin's state between two calls of NCCL: contexts, the devices, and every comm that NCCL
// holds a pointer to.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "collnet/comm/coll_comm.h"
#include "devices/devices.h"
#include "message/comm.h"
#include "plugin/abi/types.h"
#include "plugin/stats.h"
#include "plugin/tuner_file.h"

namespace slime::plugin {

enum class CommKind : uint32_t { kListen, kSend, kRecv, kCollListen, kColl };

struct OpenComm;

// An iallreduce that test() has not reported done. States: free (owner is nullptr), or in use.
struct CollRequest {
  OpenComm* owner = nullptr;  // nullptr: free
  uint64_t ticket = 0;
};

// The object behind NCCL's listenComm, sendComm, recvComm or collComm. `kind` says which members
// are set. listen, connect and accept make it, and the thread that uses it closes it. Until then
// only its requests change, and only that thread uses them.
struct OpenComm {
  OpenComm(CommKind of, Device* on, int index) : kind(of), device(on), device_index(index) {}

  const CommKind kind;
  Device* const device;
  const int device_index;
  std::unique_ptr<Listener> listener;  // kListen, kCollListen
  CommOptions options;                 // kCollListen: what the listener was opened with
  std::unique_ptr<SendComm> send;      // kSend
  std::unique_ptr<RecvComm> recv;      // kRecv
  std::unique_ptr<CollComm> session;   // kColl
  std::vector<CollRequest> requests;   // kColl: Worker::kMaxOperations of them
  // kSend, kRecv: guarded by State's mutex. kColl: used by the thread that calls the comm.
  bool failure_logged = false;

  bool is_link() const { return kind == CommKind::kSend || kind == CommKind::kRecv; }
  const Comm* link() const { return send ? static_cast<const Comm*>(send.get()) : recv.get(); }
};

// For the data path. It compares only the kind and does not look the pointer up: a lookup under a
// lock would cost more than a small message, and NCCL's progress thread got the pointer from us.
// nullptr: the comm is of another kind.
inline OpenComm* as(void* comm, CommKind kind) {
  auto* const open = static_cast<OpenComm*>(comm);
  return open != nullptr && open->kind == kind ? open : nullptr;
}

// A connect that is not complete: NCCL calls connect again with the same handle.
struct PendingConnect {
  std::unique_ptr<Connector> connector;
  Handle handle{};
  int device = 0;
  uint64_t attempt = 0;  // the number under which it was parked before; 0: never
};

// The context of a communicator, in tables of v11 and later.
struct Context {
  uint64_t comm_id = 0;
  int traffic_class = nccl::kTrafficClassUndefined;
};

// The plugin's state in one process.
//
// States: empty -> open (the first init; without NICs it has no devices) -> empty (finalize of the
// last context). A table before v11 has no finalize. When such a table has been used, the state
// stays open, and the next init without a context opens the devices anew if nothing else is open.
//
// Threads: any. The mutex guards all members but open_links_. It is held while the file of counters
// is written, and while finalize closes comms that were left open. A comm that NCCL closes is
// destroyed without the mutex, because that makes system calls and may wait for other ranks. The
// data path uses the mutex only to report a failure.
class State {
 public:
  // The state of this process. A forked child gets an empty state of its own: if it closed its
  // parent's connections, it would shut down the sockets that both processes share.
  static State& get();

  // Opens the devices unless they are open. This never fails: without NICs, or with wrong settings,
  // NCCL finds no devices and falls back to its own transports.
  void open_without_context();
  Context* open_with_context(const Context& context);
  // The traffic class of a communicator's context. A context of the CollNet table has none; the
  // context of the net table has it.
  int traffic_class_of(const void* context) const;
  // True: that was the last context, and everything is closed. Unknown contexts are ignored.
  bool finalize(const void* context);

  bool initialized() const;
  Devices* devices() const;                                 // nullptr: no devices
  std::shared_ptr<const TunerPolicy> tuner_policy() const;  // nullptr: no devices

  OpenComm* adopt(std::unique_ptr<OpenComm> comm);
  OpenComm* find(const void* comm, CommKind kind) const;  // nullptr: no such comm
  bool close(const void* comm, CommKind kind);            // false: no such comm
  bool first_failure_of(const Comm& link);                // true once for each connection

  uint64_t park(std::unique_ptr<PendingConnect> pending);  // returns the number for take()
  std::unique_ptr<PendingConnect> take(uint64_t attempt);

 private:
  explicit State(State* parent);
  void open_devices();  // this and close_everything(): the caller holds the mutex
  void close_everything();
  void report();  // called when the last connection has been closed

  const pid_t pid_;
  State* const parent_;  // the state of the process that forked this one; reachable, never used

  mutable std::mutex mutex_;
  bool initialized_ = false;
  bool endless_ = false;  // a table before v11, which has no finalize, was initialised
  std::unique_ptr<Devices> devices_;
  std::shared_ptr<const TunerPolicy> tuner_policy_;  // read when the devices open; ends with it
  std::unordered_map<const void*, std::unique_ptr<Context>> contexts_;
  std::unordered_map<const void*, std::unique_ptr<OpenComm>> comms_;
  std::unordered_map<uint64_t, std::unique_ptr<PendingConnect>> pending_;
  uint64_t last_attempt_ = 0;

  std::atomic<size_t> open_links_{0};
  Stats stats_;
};

}  // namespace slime::plugin
