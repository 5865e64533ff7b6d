// The set-up of a channel's connection: from the peer's address to a socket over which both ends
// have said hello.
//
//   active end    new -> dialing -> greeting -> listening -> done
//   passive end   new -> listening -> answering -> done
//
// An active end goes back to dialing when the peer resets the connection before its answer is here,
// and when its hello does not seem to come through because it is too long for the path. In that
// case it keeps the first connection, and goes back to it when the peer answers there or refuses
// the second: of several hellos for one channel a peer answers one, and the acknowledgements alone
// may have been lost.
// All waits have one deadline, NCCL_SLIME_CONNECT_TIMEOUT from the first progress() on. Thread: the
// channel's; no call waits.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/deadline.h"
#include "base/net/dialer.h"
#include "base/net/socket.h"
#include "transports/rail.h"
#include "transports/tcp/frames/wire.h"

namespace slime::tcp {

class TcpRail;

class Handshake {
 public:
  Handshake(TcpRail& rail, const ChannelOptions& options);
  ~Handshake();
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;
  Result<void> open();  // before anything else; at the passive end the port listens from now on

  ChannelAddress address() const { return pack_endpoint(own_); }
  const SocketAddress& peer() const { return peer_.address; }
  // kOk: both ends have said hello. kAgain: call again. Anything else is final.
  Status progress(const ChannelAddress& peer, Error* error);
  // The connection, if there is one. Ends the set-up, also before it is done.
  Fd take_socket();

 private:
  enum class State : uint8_t {
    kNew,        // progress() has not been called
    kDialing,    // active: the kernel's handshake
    kGreeting,   // active: our hello is leaving
    kListening,  // passive: waiting for the peer's hello; active: for the answer to ours
    kAnswering,  // passive: the answer is leaving
    kDone,
  };

  Status begin(const ChannelAddress& peer, Error* error);
  // Each step returns kOk when it changed state_, kAgain when it has to wait.
  Status step(Error* error);
  Status dial(Error* error);
  Status redial(Error* error);
  bool finds_small_path();
  bool first_is_answered();
  Status return_to_first();
  Status greet(Error* error);
  Status await_answer(Error* error);
  Status await_hello(Error* error);
  Status start_greeting(Fd fd, State state, Error* error);
  Result<void> tune();
  Result<void> choose_congestion_control();
  Error timeout_error() const;

  TcpRail& rail_;
  const ChannelOptions options_;
  Endpoint own_;
  Endpoint peer_;
  State state_ = State::kNew;
  Fd fd_;
  bool bound_ = false;  // active end: it tries to leave by the rail's interface, against the routes
  Deadline deadline_{SteadyClock::instance(), 0};
  std::optional<Dialer> dialer_;                  // active end
  uint64_t look_at_ns_ = 0;                       // for segments that are lost
  int lost_bytes_ = 0;                            // the length of those
  std::unique_ptr<ControlMessage<Hello>> hello_;  // active end, until kDone: it is long
  ControlMessage<Greeting> answer_;               // to the hello: ours, or the peer's
  Fd first_;  // active end, while it tries another: one that seems to lose long segments
  ControlMessage<Greeting> first_answer_;
};

}  // namespace slime::tcp
