// What the plugin remembers between two calls of NCCL: contexts, the fabric, and every comm that
// NCCL holds a pointer to.
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
#include "engine/comm.h"
#include "engine/fabric.h"
#include "plugin/abi/types.h"
#include "plugin/stats.h"
#include "plugin/tuner_file.h"

namespace slime::plugin {

enum class CommKind : uint32_t { kListen, kSend, kRecv, kCollListen, kColl };

struct OpenComm;

// An iallreduce that NCCL has not seen done.
struct CollRequest {
  OpenComm* owner = nullptr;  // nullptr: free
  uint64_t ticket = 0;
};

// What NCCL knows as a listenComm, sendComm, recvComm or collComm. Made by listen, connect and
// accept, it does not change until the thread that uses it closes it, but for its requests, which
// only that thread touches.
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
  bool failure_logged = false;         // kSend, kRecv: guarded by State's mutex

  bool is_link() const { return kind == CommKind::kSend || kind == CommKind::kRecv; }
  const Comm* link() const { return send ? static_cast<const Comm*>(send.get()) : recv.get(); }
};

// For the data path, whose pointer comes from NCCL's progress thread, which has it from us: only
// the kind is compared, because a lookup under a lock would cost more than the transfer of a small
// message. nullptr: it is of another kind.
inline OpenComm* as(void* comm, CommKind kind) {
  auto* const open = static_cast<OpenComm*>(comm);
  return open != nullptr && open->kind == kind ? open : nullptr;
}

// A connect that NCCL will call again for.
struct PendingConnect {
  std::unique_ptr<Connector> connector;
  Handle handle{};
  int device = 0;
  uint64_t attempt = 0;  // the number it was parked under before; 0: never
};

// What v11 tables and later get per communicator.
struct Context {
  uint64_t comm_id = 0;
  int traffic_class = nccl::kTrafficClassUndefined;
};

// The plugin's state in one process.
//
// States: empty -> open (the first init; without NICs it has no fabric) -> empty (finalize of the
// last context). A table before v11 has no finalize: once it was used, the state stays open, and
// the next init without a context opens the fabric anew if nothing else is open.
//
// Threads: any. The mutex guards all members but open_links_. It is held while the counters' file
// is written and while finalize closes what was left open; a comm that NCCL closes is destroyed
// outside it, because that makes system calls and may wait for other ranks. The data path comes
// here only to report a failure.
class State {
 public:
  // Of this process. A forked child gets one of its own, with nothing in it: if it closed its
  // parent's connections, it would shut down the sockets that both share.
  static State& get();

  // Opens the fabric unless it is open. Never fails for lack of NICs or because of the settings:
  // NCCL then finds no devices and falls back to its own transports.
  void open_without_context();
  Context* open_with_context(const Context& context);
  // Of the communicator's context. A CollNet's own context has none: it is that of the network's.
  int traffic_class_of(const void* context) const;
  // True: that was the last context; everything is closed. Unknown ones are ignored.
  bool finalize(const void* context);

  bool initialized() const;
  Fabric* fabric() const;                                   // nullptr: no devices
  std::shared_ptr<const TunerPolicy> tuner_policy() const;  // nullptr: no fabric

  OpenComm* adopt(std::unique_ptr<OpenComm> comm);
  OpenComm* find(const void* comm, CommKind kind) const;  // nullptr: no such comm
  bool close(const void* comm, CommKind kind);            // false: the same
  bool first_failure_of(const Comm& link);                // true once for each connection

  uint64_t park(std::unique_ptr<PendingConnect> pending);  // the number to take it back with
  std::unique_ptr<PendingConnect> take(uint64_t attempt);

 private:
  explicit State(State* parent);
  void open_fabric();  // these two: with the mutex held
  void close_everything();
  void report();  // the last connection was closed

  const pid_t pid_;
  State* const parent_;  // of the process that forked us: kept reachable, never used

  mutable std::mutex mutex_;
  bool initialized_ = false;
  bool endless_ = false;  // initialised through a table before v11, which has no finalize
  std::unique_ptr<Fabric> fabric_;
  std::shared_ptr<const TunerPolicy> tuner_policy_;  // as the fabric: read once, used until closed
  std::unordered_map<const void*, std::unique_ptr<Context>> contexts_;
  std::unordered_map<const void*, std::unique_ptr<OpenComm>> comms_;
  std::unordered_map<uint64_t, std::unique_ptr<PendingConnect>> pending_;
  uint64_t last_attempt_ = 0;

  std::atomic<size_t> open_links_{0};
  Stats stats_;
};

}  // namespace slime::plugin
