// Outcome of a hot-path call: one byte, no text, no allocation.
#pragma once

#include <cstdint>

namespace slime {

enum class Status : uint8_t {
  kOk,
  kAgain,        // nothing wrong: call again later (never an error, never logged)
  kInvalid,      // the caller passed something that no correct caller passes
  kConfig,       // the user's settings or environment cannot work
  kSystem,       // a call into the operating system or a driver failed
  kRemote,       // the peer or the network between failed
  kTimeout,      // a deadline passed; treated as a failure of the peer
  kNoMemory,     // memory, descriptors or another countable resource ran out
  kUnsupported,  // correct, but this backend cannot do it
  kInternal,     // a bug of ours
};

constexpr const char* status_name(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kAgain:
      return "again";
    case Status::kInvalid:
      return "invalid argument";
    case Status::kConfig:
      return "configuration error";
    case Status::kSystem:
      return "system error";
    case Status::kRemote:
      return "remote error";
    case Status::kTimeout:
      return "timeout";
    case Status::kNoMemory:
      return "out of resources";
    case Status::kUnsupported:
      return "unsupported";
    case Status::kInternal:
      return "internal error";
  }
  return "?";
}

}  // namespace slime
