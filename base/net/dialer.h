// Connects to a port of a host. It tries the host's addresses one after the other, again and again
// after failures that may pass, until the caller gives up.
//
// States: pausing until try_at_ns_ -> connecting -> connected; again() goes back to pausing. A
// round is one try at each address; a failure is final when a whole round brought none that may
// pass, except that this host has no way to an IP version. Invariants: there is one socket at most.
// No call waits, unless `peers` resolves a name. The caller has the deadline, and no try has the
// whole time: the kernel pauses longer and longer between its own tries, and a new connection
// begins with short pauses. Threads: the owner's only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/net/host.h"

namespace slime {

class Dialer {
 public:
  // Which failures may pass by themselves. This is the one table of that; `kCodes` in dialer.cc has
  // the error numbers.
  //
  //               connection reset,    nobody listens, the name is not
  //               no path, no answer   known, any other failure
  //   kNetwork    again                final
  //   kAll        again                again
  //
  // A port with too many callers resets some connections (visitors.h). A host or a network that
  // starts has no routes, neighbours, or addresses yet.
  enum class Retry : uint8_t {
    kNetwork,  // the peer listens before it publishes its address: comms, tcp rails, switches
    kAll,      // the peer may not listen yet, and its name not be known: a rendezvous
  };
  // A SYN is repeated after 1 s and 3 s; a new connection after that begins with 1 s again.
  static constexpr uint64_t kTryNs = 4'000'000'000;
  // Where there are other addresses: the first try at each (RFC 8305, 5), and the growth of it
  // after each round in which one did not answer.
  static constexpr uint64_t kFirstTryNs = 250'000'000, kTryGrowth = 4;
  struct Options {
    Retry retry = Retry::kNetwork;
    uint64_t pause_ns = 20'000'000;         // before another round
    uint64_t try_ns = kTryNs;               // of one try, at most
    const SocketAddress* source = nullptr;  // as in start_connect(); copied
    // Tries are from a socket that is bound to this interface. After a round without an answer the
    // next one is not, and so on by turns: answers may come by another interface, which a bound
    // socket does not hear. Empty: none.
    std::string interface = {};
    uint64_t bound_try_ns = kTryNs;  // of each try, at most, where there is an interface
    uint64_t buffer_bytes = 0;
    // As in ConnectOptions. Small ones cost nothing where little is said, and come through where
    // the path has a smaller MTU than both ends and nobody says so.
    int max_segment = kSmallSegment;
  };
  // The addresses, asked for before each round.
  using Peers = std::function<Result<Addresses>()>;

  Dialer(Peers peers, const Options& options);
  Dialer(const Addresses& peers, const Options& options)
      : Dialer([peers]() -> Result<Addresses> { return peers; }, options) {}

  // kOk: connected; the caller may use fd(). kAgain: call again. Anything else is final.
  Status progress(uint64_t now_ns, Error* error);
  // Call it when the exchange on a connection has failed with *error. kAgain: another connection
  // may succeed, and progress() makes it. Otherwise returns the status of *error.
  Status again(uint64_t now_ns, Error* error);
  // The peer has answered at the present address: further tries go there, and a refusal is final.
  void stay();
  void use_small_segments() { max_segment_ = kSmallSegment; }  // at further tries
  static bool may_pass(const Error& error, Retry retry = Retry::kNetwork);

  Fd& fd() { return fd_; }
  const Fd& fd() const { return fd_; }
  const SocketAddress& peer() const { return peer_; }  // of the last try
  bool is_bound() const { return bound_; }             // that try, to the interface
  uint64_t due_ns() const;  // progress() has something to do then, also without an event
  // The failures of the last round, or of the present one if that is the first; "" if there are
  // none.
  const std::string& last_failure() const { return last_.empty() ? failures_ : last_; }

 private:
  Status connect(Error* error);
  Status end_try(uint64_t now_ns, Error* error);
  uint64_t try_limit_ns() const;

  Peers peers_;
  const Options options_;
  Retry retry_;
  SocketAddress source_, peer_;
  bool bound_;  // the present round, to the interface
  int max_segment_;
  Fd fd_;
  Addresses addresses_;          // of the present round
  size_t next_ = 0;              // of addresses_
  uint32_t silent_rounds_ = 0;   // in which an address did not answer
  bool was_silent_ = false;      // one of the present round
  bool not_reached_ = false;     // the same, or its neighbours say that it is not there
  std::string failures_;         // of the present round
  bool round_may_pass_ = false;  // one of them may
  std::optional<Error> final_;   // one of them that may not
  std::string last_;             // failures of the last round, or of the last exchange
  uint64_t try_at_ns_ = 0, began_ns_ = 0;
};

}  // namespace slime
