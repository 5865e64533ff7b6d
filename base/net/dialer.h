// Connects to a port, again and again where that may help, until the caller's deadline.
//
// States: pausing until a time -> connecting -> connected; again() goes back to pausing.
// Invariants: one socket at most; nothing here waits; the caller's deadline bounds the whole.
// Threads: one, the owner's.
#pragma once

#include <cstdint>
#include <string>

#include "base/net/socket.h"

namespace slime {

class Dialer {
 public:
  // Which failures may pass by themselves. A port that turns callers away because it has too many
  // resets their connections (guarded_port.h), so an abort always may.
  enum class Retry : uint8_t {
    kAborts,       // the peer listens before it gives its address away: a refusal is final
    kUnreachable,  // besides: routes and neighbours may not be known yet
    kRefusals,     // besides: the peer may not listen yet
  };
  struct Options {
    Retry retry = Retry::kAborts;
    uint64_t pause_ns = 20'000'000;         // before another try
    const SocketAddress* source = nullptr;  // as in start_connect(); copied
    uint64_t buffer_bytes = 0;
  };

  Dialer(const SocketAddress& peer, const Options& options);

  // kOk: connected, and fd() is the caller's to use. kAgain: call again. Anything else is final.
  Status progress(uint64_t now_ns, Error* error);
  // After the exchange on a connection failed with *error: kAgain if another connection may do
  // better, and then progress() makes it; otherwise the status of *error.
  Status again(uint64_t now_ns, Error* error);

  Fd& fd() { return fd_; }
  const Fd& fd() const { return fd_; }
  // Why the last try failed that was repeated; "" if none was.
  const std::string& last_failure() const { return last_failure_; }

 private:
  bool may_pass(const Error& error) const;

  const SocketAddress peer_;
  const Options options_;
  SocketAddress source_;
  Fd fd_;
  uint64_t try_at_ns_ = 0;
  std::string last_failure_;
};

}  // namespace slime
