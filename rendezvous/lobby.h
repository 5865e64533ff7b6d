// Rank 0's port: connections until they have said who they are, by the rules of
// base/net/visitors.h.
//
// A visitor is accepted, then read until it has introduced itself (the owner takes it), or until it
// is turned away: it speaks another protocol, its time is over, or its place is needed. After a
// pause of this thread every visitor is read once more before it counts as late.
//
// Thread rules: one thread.
#pragma once

#include <poll.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "base/clock.h"
#include "base/net/visitors.h"

namespace slime::rendezvous {

// Owners derive their own, with `void abort()`, and are made from an Accepted.
struct Visitor {
  SocketAddress peer;
  uint64_t since_ns = 0;     // when it was accepted
  uint64_t deadline_ns = 0;  // for its introduction
};

template <typename V>
class Lobby : private VisitorPort {
 public:
  Lobby(Fd listener, uint64_t patience_ns, const Clock& clock)
      : clock_(clock), listener_(std::move(listener)), patience_ns_(patience_ns) {}
  virtual ~Lobby() = default;

  void add_to(std::vector<pollfd>* waited) const {
    waited->push_back({paused_ ? -1 : listener_.get(), POLLIN, 0});
    for (const V& visitor : visitors_) waited->push_back({visitor.fd(), POLLIN, 0});
  }
  // Accepts and reads. An error is accept's, and the listener is left alone until the next call.
  Status look(Error* error) {
    std::erase_if(visitors_, [this](V& visitor) { return !stays(&visitor); });
    const Status status = accept_visitors(listener_, clock_.now_ns(), error);
    paused_ = status != Status::kOk && status != Status::kAgain;
    return status;
  }
  // Nobody has looked for that long: no visitor is late by it.
  void excuse(uint64_t away_ns) {
    const uint64_t now = clock_.now_ns();
    for (V& visitor : visitors_) {
      const uint64_t shift = std::min(away_ns, now - visitor.since_ns);
      visitor.since_ns += shift;
      visitor.deadline_ns += shift;
    }
  }

 protected:
  // kAgain: it has not introduced itself yet; kOk: it has, and the owner has taken it; else why
  // not.
  virtual Status read(V* visitor, Error* error) = 0;
  virtual void turn_away(V* visitor, const Error& why) = 0;

  const Clock& clock_;

 private:
  std::vector<Visit> visits() const override {
    std::vector<Visit> all;
    for (const V& visitor : visitors_) all.push_back({visitor.peer, visitor.since_ns});
    return all;
  }
  void drop_visit(size_t index) override {
    const auto dropped = visitors_.begin() + static_cast<ptrdiff_t>(index);
    turn_away(&*dropped, make_error(Status::kRemote, 0,
                                    "it did not say who it is, and others wait for its place"));
    dropped->abort();
    visitors_.erase(dropped);
  }
  Status admit(Accepted accepted, Error* error) override {
    V visitor(std::move(accepted));
    visitor.since_ns = clock_.now_ns();
    visitor.deadline_ns = visitor.since_ns + patience_ns_;
    if (const Status status = prepare(&visitor, error); status != Status::kOk) return status;
    visitors_.push_back(std::move(visitor));
    if (!stays(&visitors_.back())) visitors_.pop_back();
    return Status::kOk;
  }
  // What a visitor needs before it is read.
  virtual Status prepare(V* /*visitor*/, Error* /*error*/) { return Status::kOk; }

  bool stays(V* visitor) {
    const bool late = clock_.now_ns() >= visitor->deadline_ns;  // before the read
    Error error;
    const Status status = read(visitor, &error);
    if (status == Status::kOk) return false;
    if (status == Status::kAgain) {
      if (!late || clock_.now_ns() < visitor->deadline_ns) return true;
      error = make_error(Status::kTimeout, 0, "it connected and did not say who it is in time");
    }
    turn_away(visitor, error);
    return false;
  }

  const Fd listener_;
  const uint64_t patience_ns_;
  std::deque<V> visitors_;  // oldest first
  bool paused_ = false;     // poll would report without end a listener that cannot accept
};

}  // namespace slime::rendezvous
