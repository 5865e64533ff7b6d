#include "base/net/dialer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace slime {

Dialer::Dialer(Peers peers, const Options& options)
    : peers_(std::move(peers)),
      options_(options),
      retry_(options.retry),
      source_(options.source ? *options.source : SocketAddress()) {}

// Without a socket it is pausing; with one it is connecting.
Status Dialer::progress(uint64_t now_ns, Error* error) {
  if (!fd_) {
    if (now_ns < try_at_ns_) return Status::kAgain;
    began_ns_ = now_ns;
    if (connect(error) != Status::kOk) return again(now_ns, error);
  }
  const Status status = finish_connect(fd_, peer_, error);
  if (status == Status::kOk) return status;
  if (status == Status::kAgain) {
    if (now_ns - began_ns_ < options_.try_ns) return status;
    *error =
        make_error(Status::kTimeout, ETIMEDOUT, "no answer from %s", peer_.to_string().c_str());
  }
  return again(now_ns, error);
}

Status Dialer::connect(Error* error) {
  auto peer = peers_(attempts_++);
  if (peer) peer_ = *peer;
  auto fd = peer ? start_connect(peer_, options_.source ? &source_ : nullptr, options_.buffer_bytes)
                 : Result<Fd>(fail(std::move(peer.error())));
  if (fd) {
    fd_ = std::move(*fd);
    return Status::kOk;
  }
  *error = std::move(fd.error());
  return error->status;
}

Status Dialer::again(uint64_t now_ns, Error* error) {
  if (!may_pass(*error)) return error->status;
  fd_.reset();
  try_at_ns_ = now_ns + options_.pause_ns;
  last_failure_ = std::move(error->what);
  return Status::kAgain;
}

void Dialer::stay() {
  peers_ = [peer = peer_](size_t /*attempt*/) -> Result<SocketAddress> { return peer; };
  retry_ = std::min(retry_, Retry::kUnreachable);
}

bool Dialer::may_pass(const Error& error) const {
  if (is_abort(error)) return true;
  switch (error.code) {
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case ETIMEDOUT:
    case EHOSTDOWN:
    case ENETRESET:
    case ECONNABORTED:
      return retry_ >= Retry::kUnreachable;
    case ECONNREFUSED:
      return retry_ >= Retry::kRefusals;
    default:
      return retry_ == Retry::kAll;
  }
}

}  // namespace slime
