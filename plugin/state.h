// What the plugin remembers between two calls of NCCL: contexts, the fabric, and every object that
// NCCL holds a pointer to. The data path touches none of it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "engine/comm.h"
#include "engine/fabric.h"
#include "plugin/abi/types.h"
#include "plugin/coll_object.h"
#include "plugin/stats.h"
#include "plugin/tuner_policy.h"

namespace slime::plugin {

enum class ObjectKind : uint32_t { kListen, kSend, kRecv };

// What NCCL knows as listenComm, sendComm or recvComm.
struct NetObject {
  ObjectKind kind = ObjectKind::kListen;
  std::unique_ptr<Listener> listener;  // kListen
  std::unique_ptr<SendComm> send;      // kSend
  std::unique_ptr<RecvComm> recv;      // kRecv
  Device* device = nullptr;
  int device_index = 0;
  bool failure_logged = false;  // guarded by State's mutex

  bool is_comm() const { return kind != ObjectKind::kListen; }
  const Comm* comm() const { return send ? static_cast<const Comm*>(send.get()) : recv.get(); }
};

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

class State {
 public:
  // Of this process. A forked child gets one of its own, with nothing in it: were it to close its
  // parent's connections, it would shut down the sockets that both share.
  static State& get();

  // Opens the fabric unless it is open. Never fails for lack of NICs or because of the settings:
  // NCCL then finds no devices and falls back to its own transports.
  void open_without_context();
  Context* open_with_context(const Context& context);
  // Of the communicator's context. A CollNet's own has none: it is that of the network's.
  int traffic_class_of(const void* context) const;
  // True: that was the last context; everything is closed. Unknown ones are ignored.
  bool finalize(const void* context);

  bool initialized() const;
  Fabric* fabric() const;                                   // nullptr: no devices
  std::shared_ptr<const TunerPolicy> tuner_policy() const;  // nullptr: no fabric

  NetObject* adopt(std::unique_ptr<NetObject> object);
  NetObject* find_listen(const void* object) const;  // nullptr: no such object
  NetObject* find_comm(const void* object) const;
  bool close(const void* object, ObjectKind kind);
  bool first_failure_of(const Comm& comm);  // true once for each connection

  // The same for CollNet.
  CollObject* adopt(std::unique_ptr<CollObject> object);
  CollObject* find_coll(const void* object) const;
  bool close_coll(const void* object);

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
  std::unordered_map<const void*, std::unique_ptr<NetObject>> objects_;
  std::unordered_map<const void*, std::unique_ptr<CollObject>> colls_;
  std::unordered_map<uint64_t, std::unique_ptr<PendingConnect>> pending_;
  uint64_t last_attempt_ = 0;

  std::atomic<size_t> open_comms_{0};
  Stats stats_;
};

}  // namespace slime::plugin
