// What NCCL knows as the listenComm or collComm of a CollNet.
#pragma once

#include <array>
#include <memory>

#include "collnet/session.h"
#include "engine/comm.h"

namespace slime::plugin {

struct CollObject;

// An iallreduce that NCCL has not seen done.
struct CollRequest {
  CollObject* owner = nullptr;  // nullptr: free
  uint64_t ticket = 0;
};

struct CollObject {
  std::unique_ptr<Listener> listener;  // of a listenComm
  CommOptions options;                 // the same
  std::unique_ptr<Session> session;    // of a collComm
  Device* device = nullptr;
  int device_index = 0;
  bool failure_logged = false;
  std::array<CollRequest, Worker::kMaxOperations> requests;
};

}  // namespace slime::plugin
