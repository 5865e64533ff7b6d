// Errors that several functions of the net API share. All of them are cold.
#pragma once

#include "base/error.h"
#include "plugin/state.h"

namespace slime::plugin {

inline Error null_argument(const char* name) {
  return make_error(Status::kInvalid, 0, "%s is NULL", name);
}

inline Error not_a(const char* what, const void* object) {
  return make_error(
      Status::kInvalid, 0,
      "%p is not a %s of this process that is open: it was closed already, belongs to "
      "the process that forked this one, or is of another kind",
      object, what);
}

// The device NCCL means, or an error that says which there are.
Result<Device*> find_device(int index);

// regMr and deregMr of any kind of comm on this device. (net_memory.cc)
// The kind of the range follows from `type`.
Result<void> register_on(Device& device, MemoryRange range, int type, void** mhandle);
Result<void> deregister_on(Device& device, void* mhandle);

// A connection's failure, with an empty sentence if it was logged before.
Error failure_of(const Comm& comm);

}  // namespace slime::plugin
