#include "base/net/dialer.h"

#include <cerrno>

namespace slime {

Dialer::Dialer(const SocketAddress& peer, const Options& options)
    : peer_(peer), options_(options), source_(options.source ? *options.source : SocketAddress()) {}

Status Dialer::progress(uint64_t now_ns, Error* error) {
  if (!fd_) {
    if (now_ns < try_at_ns_) return Status::kAgain;
    auto fd = start_connect(peer_, options_.source ? &source_ : nullptr, options_.buffer_bytes);
    if (!fd) {
      *error = std::move(fd.error());
      return again(now_ns, error);
    }
    fd_ = std::move(*fd);
  }
  const Status status = finish_connect(fd_, peer_, error);
  return status == Status::kOk || status == Status::kAgain ? status : again(now_ns, error);
}

Status Dialer::again(uint64_t now_ns, Error* error) {
  if (!may_pass(*error)) return error->status;
  fd_.reset();
  try_at_ns_ = now_ns + options_.pause_ns;
  last_failure_ = std::move(error->what);
  return Status::kAgain;
}

bool Dialer::may_pass(const Error& error) const {
  if (is_abort(error)) return true;
  switch (error.code) {
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case ETIMEDOUT:
      return options_.retry >= Retry::kUnreachable;
    case ECONNREFUSED:
      return options_.retry >= Retry::kRefusals;
    default:
      return false;
  }
}

}  // namespace slime
