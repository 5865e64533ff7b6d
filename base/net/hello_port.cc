#include "base/net/hello_port.h"

#include <utility>

namespace slime {

Status HelloPort::read_callers(const Fd& listener, const Clock& clock, Error* error) {
  clock_ = &clock;
  now_ns_ = clock.now_ns();
  std::erase_if(callers_, [this](Caller& caller) { return settle(caller); });
  return accept_visitors(listener, now_ns_, error);
}

void HelloPort::drop_callers() {
  for (Caller& caller : callers_) {
    turn_away(caller, "nobody is expected any more");
    abort_connection(std::move(caller.fd));
  }
  callers_.clear();
}

void HelloPort::add_to(std::vector<pollfd>* waited) const {
  for (const Caller& caller : callers_) waited->push_back({caller.fd.get(), POLLIN, 0});
}

std::vector<Visit> HelloPort::visits() const {
  std::vector<Visit> all;
  for (const Caller& caller : callers_) all.push_back({caller.from, caller.since_ns});
  return all;
}

// The reset tells a legitimate caller that it may try again.
void HelloPort::drop_visit(size_t index) {
  const auto dropped = callers_.begin() + static_cast<ptrdiff_t>(index);
  turn_away(*dropped, "too many connections wait without a hello");
  abort_connection(std::move(dropped->fd));
  callers_.erase(dropped);
}

// The caller's bytes may have arrived with the connection, so this reads at once.
Status HelloPort::admit(Accepted accepted, Error* error) {
  auto opening = open();
  if (!opening) {
    *error = std::move(opening.error());
    return error->status;
  }
  Caller& caller = callers_.emplace_back();
  caller.fd = std::move(accepted.fd);
  caller.from = accepted.peer;
  caller.since_ns = clock_->now_ns();
  caller.opening = std::move(*opening);
  caller.hello.resize(hello_bytes_);
  if (settle(caller)) callers_.pop_back();
  return Status::kOk;
}

// Moves a caller on and decides about it, in this order: a complete hello goes to the owner, a
// wrong beginning is refused, a failed connection and one that is too late are strangers.
bool HelloPort::settle(Caller& caller) {
  Error error;
  const Status status = exchange(caller, &error);
  std::optional<std::string> why;
  bool late = false;
  if (const char* refusal = refuse_begun(caller.said())) {
    why = refusal;  // decided by the first bytes, without a wait for the rest
  } else if (status == Status::kOk) {
    why = accept(caller);
  } else if (status != Status::kAgain) {
    why = std::move(error.what);
  } else if (now_ns_ >= caller.since_ns + limit_ns_) {
    why = "no whole hello in time";
    late = true;
  } else {
    return false;
  }
  if (why) turn_away(caller, *why);
  // Where packets get lost, a hello may be late: the reset tells its caller to try again.
  if (late) abort_connection(std::move(caller.fd));
  return true;
}

Status HelloPort::exchange(Caller& caller, Error* error) {
  if (caller.sent < caller.opening.size()) {
    const Status sent = send_message(caller.fd, caller.opening, &caller.sent, error);
    if (sent != Status::kOk) return sent;
    caller.since_ns = clock_->now_ns();  // from now on the port waits for the caller
  }
  return receive_message(caller.fd, caller.hello, &caller.received, error);
}

void HelloPort::turn_away(const Caller& caller, const std::string& why) {
  if (const auto more = strangers_.turned_away(now_ns_)) log_stranger(caller, why, *more);
}

}  // namespace slime
