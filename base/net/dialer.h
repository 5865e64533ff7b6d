// Connects to a port. It tries again after failures that may pass, until the caller gives up.
//
// States: pausing until try_at_ns_ -> connecting -> connected; again() goes back to pausing.
// Invariants: there is one socket at most, and no call waits. The caller has the deadline.
// Threads: the owner's only.
#pragma once

#include <cstdint>
#include <string>

#include "base/net/socket.h"

namespace slime {

class Dialer {
 public:
  // The failures that may pass by themselves. A port with too many callers resets some connections
  // (visitors.h), so an abort always may pass.
  enum class Retry : uint8_t {
    kAborts,       // a refusal is final, because the peer listens before it publishes its address
    kUnreachable,  // also: routes and neighbours may not be known yet
    kRefusals,     // also: the peer may not listen yet
  };
  struct Options {
    Retry retry = Retry::kAborts;
    uint64_t pause_ns = 20'000'000;         // before another try
    const SocketAddress* source = nullptr;  // as in start_connect(); copied
    uint64_t buffer_bytes = 0;
  };

  Dialer(const SocketAddress& peer, const Options& options);

  // kOk: connected; the caller may use fd(). kAgain: call again. Anything else is final.
  Status progress(uint64_t now_ns, Error* error);
  // Call it when the exchange on a connection has failed with *error. kAgain: another connection
  // may succeed, and progress() makes it. Otherwise returns the status of *error.
  Status again(uint64_t now_ns, Error* error);

  Fd& fd() { return fd_; }
  const Fd& fd() const { return fd_; }
  // The failure of the last try that was repeated; "" if none was.
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
