// The result of a call: a Status on hot paths (one byte, no text, no allocation), a Result on cold
// ones (a value, or an Error with a sentence that tells a person what to do).
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace slime {

enum class Status : uint8_t {
  kOk,
  kAgain,        // not yet: call again later (never an error, never logged)
  kInvalid,      // the caller passed something that no correct caller passes
  kConfig,       // the user's settings, environment or sizes cannot work together
  kSystem,       // a call into the operating system or a driver failed
  kRemote,       // the peer, or the network in between, failed
  kTimeout,      // a deadline passed; treated as a failure of the peer
  kNoMemory,     // memory, descriptors or another countable resource ran out
  kUnsupported,  // correct, but this backend cannot do it
  kInternal,     // a bug of ours
  kCancelled,    // the caller does not want it any more
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
    case Status::kCancelled:
      return "cancelled";
  }
  return "?";
}

// `what` is one sentence: operation, peer, device, size, exact code, and what to try. An empty one
// means that the error has been logged already.
struct Error {
  Status status = Status::kInternal;
  int code = 0;  // errno, or the code of a provider or completion; 0: none
  std::string what;
};

template <typename T>
using Result = tl::expected<T, Error>;

// Formats the sentence as printf does, up to 1023 bytes of it. It stays one line: control
// characters become spaces (base/text.h).
[[gnu::format(printf, 3, 4)]] Error make_error(Status status, int code, const char* format, ...);

// The last words of an error that only says that another process has failed. The log of that
// process has the cause.
inline constexpr char kCauseElsewhere[] = "its log says why";
inline bool is_consequence(const std::string& text) {
  return text.find(kCauseElsewhere) != std::string::npos;
}

// The status of a failed system call: kRemote if the network is broken, kNoMemory if a resource is
// missing, else kSystem.
Status status_of_errno(int code);

// The error of a failed system call: the sentence, strerror(code) and the code.
[[gnu::format(printf, 2, 3)]] Error system_error(int code, const char* format, ...);
// What to try where a call found no free descriptor, for the end of a sentence; otherwise "".
const char* descriptor_advice(int code);
// The error of a call that makes a descriptor, with that advice.
Error descriptor_error(int code, const char* call);

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
// With a new error that has no code.
[[gnu::format(printf, 2, 3)]] tl::unexpected<Error> fail(Status status, const char* format, ...);

}  // namespace slime
