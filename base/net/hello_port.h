// A listening port where each caller must first say a hello of a fixed size. The port bounds who
// has not (base/net/visitors.h), reads their hellos piece by piece, and hands over those whose
// hello its owner accepts. All others are strangers: they are counted, logged and closed, and
// change nothing.
//
//   caller                      port
//     connects            -->
//            <--  opening            where the owner has one: a nonce to sign
//     hello               -->        complete: accept() judges
//
// States of a caller: opening is leaving -> hello is arriving -> accepted, or a stranger.
// Memory: VisitorPort::kPlaces callers of opening and hello each.
// Threads: one, or under the owner's mutex.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/net/visitors.h"

namespace slime {

class HelloPort : private VisitorPort {
 public:
  using VisitorPort::kGraceNs;
  using VisitorPort::kPlaces;

  // Connections that were turned away, for the error about a peer that never came.
  const StrangerLog& strangers() const { return strangers_; }

 protected:
  struct Caller {
    Fd fd;
    SocketAddress from;
    uint64_t since_ns = 0;           // accepted then; or, with an opening, when that had left
    std::vector<std::byte> opening;  // what the port says first
    size_t sent = 0;                 // of it
    std::vector<std::byte> hello;
    size_t received = 0;  // of it
    std::span<const std::byte> said() const { return std::span(hello).first(received); }
  };

  // `limit_ns`: the time that a caller has for its hello.
  HelloPort(size_t hello_bytes, uint64_t limit_ns)
      : hello_bytes_(hello_bytes), limit_ns_(limit_ns) {}
  ~HelloPort() = default;

  // Accepts who waits at `listener`, and reads what they and earlier callers have said.
  // kAgain: more wait in the backlog. An error is of the listener.
  Status look(const Fd& listener, uint64_t now_ns, Error* error);

 private:
  // What the caller is told first; empty: nothing.
  virtual Result<std::vector<std::byte>> open() { return std::vector<std::byte>(); }
  // Why these first bytes cannot become a hello; nullptr: they may.
  virtual const char* refuse_begun(std::span<const std::byte> /*said*/) const { return nullptr; }
  // Judges a complete hello. Nothing: the owner has moved the caller's connection away. Otherwise
  // why it is a stranger.
  virtual std::optional<std::string> accept(Caller& caller) = 0;
  // A stranger, for the log: at most one a second. `more` ends the line: how many had none.
  virtual void log_stranger(const Caller& caller, const std::string& why,
                            const std::string& more) const = 0;

  std::vector<Visit> visits() const override;
  void drop_visit(size_t index) override;
  Status admit(Accepted accepted, Error* error) override;
  bool settle(Caller& caller);  // true: this port has done with it
  Status exchange(Caller& caller, Error* error);
  void turn_away(const Caller& caller, const std::string& why);

  const size_t hello_bytes_;
  const uint64_t limit_ns_;
  uint64_t now_ns_ = 0;         // when the look began
  std::deque<Caller> callers_;  // oldest first
  StrangerLog strangers_;
};

}  // namespace slime
