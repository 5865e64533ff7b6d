#include "base/net/dialer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace slime {
namespace {

// What a network says that starts or flaps. EADDRNOTAVAIL: our address is not there yet, or no port
// is free. The others: connect(2), and what ICMP brings (linux/net/ipv4/icmp.c, icmp_err_convert;
// EACCES: linux/net/ipv6/icmp.c, tab_unreach, of a firewall).
constexpr int kCodes[] = {EHOSTUNREACH, ENETUNREACH, ENETDOWN,     ETIMEDOUT,     EHOSTDOWN,
                          ENETRESET,    ENONET,      ECONNABORTED, EADDRNOTAVAIL, EACCES};

// This host may have no addresses or routes of that IP version, now or ever.
bool lacks_version(const Error& error) {
  return error.code == ENETUNREACH || error.code == EADDRNOTAVAIL || error.code == EAFNOSUPPORT;
}

}  // namespace

Dialer::Dialer(Peers peers, const Options& options)
    : peers_(std::move(peers)),
      options_(options),
      retry_(options.retry),
      source_(options.source ? *options.source : SocketAddress()),
      bound_(!options.interface.empty()),
      max_segment_(options.max_segment) {}

// Without a socket it is pausing; with one it is connecting.
Status Dialer::progress(uint64_t now_ns, Error* error) {
  if (!fd_) {
    if (now_ns < try_at_ns_) return Status::kAgain;
    began_ns_ = now_ns;
    if (connect(error) != Status::kOk) return end_try(now_ns, error);
  }
  const Status status = finish_connect(fd_, peer_, error);
  if (status == Status::kOk) return status;
  if (status == Status::kAgain) {
    if (now_ns - began_ns_ < try_limit_ns()) return status;
    was_silent_ = true;
    *error =
        make_error(Status::kTimeout, ETIMEDOUT, "no answer from %s", peer_.to_string().c_str());
  }
  return end_try(now_ns, error);
}

Status Dialer::connect(Error* error) {
  if (next_ == addresses_.size()) {
    auto found = peers_();
    addresses_ = found ? std::move(*found) : Addresses();
    next_ = 0;
    silent_rounds_ += std::exchange(was_silent_, false) ? 1 : 0;
    if (std::exchange(not_reached_, false) && !options_.interface.empty()) bound_ = !bound_;
    failures_.clear();
    round_may_pass_ = false;
    final_.reset();
    if (!found) return *error = std::move(found.error()), error->status;
  }
  peer_ = addresses_[next_++];
  auto fd = start_connect(peer_, {.source = options_.source ? &source_ : nullptr,
                                  .buffer_bytes = options_.buffer_bytes,
                                  .interface = bound_ ? options_.interface : "",
                                  .max_segment = max_segment_});
  if (!fd) return *error = std::move(fd.error()), error->status;
  fd_ = std::move(*fd);
  return Status::kOk;
}

// The next address is tried at once, and the first one again after a pause.
Status Dialer::end_try(uint64_t now_ns, Error* error) {
  fd_.reset();
  failures_ += (failures_.empty() ? "" : "; ") + error->what;
  const bool passes = may_pass(*error, retry_);
  if (!passes) final_ = *error;
  not_reached_ |= error->code == EHOSTUNREACH || error->code == ETIMEDOUT;
  round_may_pass_ |= passes && !lacks_version(*error);
  try_at_ns_ = now_ns;
  if (next_ < addresses_.size()) return Status::kAgain;
  last_ = std::move(failures_);
  failures_.clear();
  if (final_ && !round_may_pass_) {
    *error = Error{final_->status, final_->code, last_};
    return error->status;
  }
  try_at_ns_ += options_.pause_ns;
  return Status::kAgain;
}

Status Dialer::again(uint64_t now_ns, Error* error) {
  if (!may_pass(*error, retry_)) return error->status;
  fd_.reset();
  try_at_ns_ = now_ns + options_.pause_ns;
  round_may_pass_ = true;
  last_ = std::move(error->what);
  return Status::kAgain;
}

void Dialer::stay() {
  peers_ = [peer = peer_]() -> Result<Addresses> { return Addresses(peer); };
  addresses_.clear();
  next_ = 0;
  retry_ = Retry::kNetwork;
}

uint64_t Dialer::try_limit_ns() const {
  if (!options_.interface.empty()) return options_.bound_try_ns;
  uint64_t limit_ns = addresses_.size() > 1 ? kFirstTryNs : options_.try_ns;
  for (uint32_t i = 0; i < silent_rounds_ && limit_ns < options_.try_ns; ++i) {
    limit_ns *= kTryGrowth;
  }
  return std::min(limit_ns, options_.try_ns);
}

uint64_t Dialer::due_ns() const { return fd_ ? began_ns_ + try_limit_ns() : try_at_ns_; }

bool Dialer::may_pass(const Error& error, Retry retry) {
  return retry == Retry::kAll || is_abort(error) || std::ranges::count(kCodes, error.code) > 0;
}

}  // namespace slime
