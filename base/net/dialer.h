// Connects to a port. It tries again after failures that may pass, until the caller gives up.
//
// States: pausing until try_at_ns_ -> connecting -> connected; again() goes back to pausing.
// Invariants: there is one socket at most. No call waits, unless `peers` resolves a name. The
// caller has the deadline. Threads: the owner's only.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
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
    kAll,          // also: another address of the peer may do better, or its name is not known yet
  };
  struct Options {
    Retry retry = Retry::kAborts;
    uint64_t pause_ns = 20'000'000;                          // before another try
    uint64_t try_ns = std::numeric_limits<uint64_t>::max();  // of one try
    const SocketAddress* source = nullptr;                   // as in start_connect(); copied
    uint64_t buffer_bytes = 0;
  };
  // The address for try number `attempt`, counted from 0.
  using Peers = std::function<Result<SocketAddress>(size_t attempt)>;

  Dialer(Peers peers, const Options& options);
  Dialer(const SocketAddress& peer, const Options& options)
      : Dialer([peer](size_t /*attempt*/) -> Result<SocketAddress> { return peer; }, options) {}

  // kOk: connected; the caller may use fd(). kAgain: call again. Anything else is final.
  Status progress(uint64_t now_ns, Error* error);
  // Call it when the exchange on a connection has failed with *error. kAgain: another connection
  // may succeed, and progress() makes it. Otherwise returns the status of *error.
  Status again(uint64_t now_ns, Error* error);
  // The peer has answered at the present address: further tries go there, and a refusal is final.
  void stay();

  Fd& fd() { return fd_; }
  const Fd& fd() const { return fd_; }
  // The failure of the last try that was repeated; "" if none was.
  const std::string& last_failure() const { return last_failure_; }

 private:
  Status connect(Error* error);
  bool may_pass(const Error& error) const;

  Peers peers_;
  const Options options_;
  Retry retry_;
  SocketAddress source_, peer_;
  Fd fd_;
  size_t attempts_ = 0;
  uint64_t try_at_ns_ = 0, began_ns_ = 0;
  std::string last_failure_;
};

}  // namespace slime
