// Outcome of a cold-path call: a value, or an Error that a person can act on.
#pragma once

#include <slime/status.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace slime {

// `what` is one sentence: operation, peer, device, size, exact code, and what to try.
struct Error {
  Status status = Status::kInternal;
  int code = 0;  // errno, provider code or completion code; 0 where there is none
  std::string what;
};

template <typename T>
using Result = tl::expected<T, Error>;

// printf-style; the caller names the status, the exact code and the sentence.
[[gnu::format(printf, 3, 4)]] Error make_error(Status status, int code, const char* format, ...);

// How an error ends that only says that another process has failed: the cause is told there.
inline constexpr char kToldElsewhere[] = "its log says why";

// For failed system calls: appends strerror(code) and the code itself.
[[gnu::format(printf, 2, 3)]] Error system_error(int code, const char* format, ...);

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace slime
