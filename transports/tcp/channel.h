// One connection over a tcp rail. Set-up is in channel_setup.cc, the data path in channel.cc,
// sentences about failures in channel_errors.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/deadline.h"
#include "base/net/dialer.h"
#include "base/net/socket.h"
#include "transports/rail.h"
#include "transports/tcp/frame_reader.h"
#include "transports/tcp/pacer.h"
#include "transports/tcp/send_queue.h"
#include "transports/tcp/wire.h"

namespace slime::tcp {

class TcpRail;

class TcpChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(TcpRail& rail, const ChannelOptions& options);
  ~TcpChannel() override;

  ChannelAddress address() const override { return pack_endpoint(own_); }
  Status connect(const ChannelAddress& peer) override;
  Status post(std::span<const Work> works, size_t* taken) override;
  Status poll(std::span<Done> done, size_t* count) override;
  void fence() override;
  bool silent_for(uint64_t ns) override { return is_silent(fd_, ns); }
  const Error& failure() const override { return failure_; }
  std::string peer_name() const override;

 private:
  enum class State : uint8_t {
    kNew,        // connect() has not been called
    kDialing,    // active: the kernel's handshake
    kGreeting,   // active: our hello is leaving
    kListening,  // passive: waiting for the peer's hello; active: for the answer to ours
    kAnswering,  // passive: the answer is leaving
    kReady,
    kBroken,  // failed, but arrivals may still be in the socket
    kFailed,
    kFenced,
  };

  TcpChannel(TcpRail& rail, const ChannelOptions& options, const Nonce& nonce);

  // Set-up. Each step returns kOk when it changed state_, kAgain when it has to wait.
  Status begin(const ChannelAddress& peer, Error* error);
  Status step(Error* error);
  Status dial(Error* error);
  Status redial(Error* error);
  Status greet(Error* error);
  Status await_answer(Error* error);
  Status await_hello(Error* error);
  Status check_answer(const Hello& answer, Error* error) const;
  Status tune(Error* error);
  Result<void> choose_congestion_control();
  void mark();
  void prepare_greeting();
  void become_ready();
  Error timeout_error() const;

  // Data path.
  bool valid(const Work& work);
  void flush();
  void hang_up();
  size_t receive(std::span<Done> done);
  void watch(uint64_t now_ns);
  Status nothing_to_report();

  // Failures. fail_with() keeps the first one.
  void fail_with(Error error, State state);
  Error send_error(int code) const;
  Error read_error() const;
  Error frame_error() const;
  Error work_error(const Work& work) const;
  Error ack_error() const;
  std::string where() const;  // "rail eth0 to 10.0.0.2:4711"

  TcpRail& rail_;
  const ChannelOptions options_;
  Endpoint own_;
  Endpoint peer_;
  State state_ = State::kNew;
  uint32_t skips_left_ = 1;  // polls that may report what is sent, and not look at the socket
  Fd fd_;
  Pacer pacer_;  // while the send queue is blocked
  uint32_t idle_polls_ = 0;
  uint64_t watch_at_ns_ = 0;
  SilenceWatch silence_;
  SendQueue queue_;
  FrameReader reader_;

  Deadline deadline_{SteadyClock::instance(), 0};  // of connect()
  std::optional<Dialer> dialer_;                   // active end
  Hello peer_hello_;
  ControlMessage<kHelloBytes> greeting_;  // ours: hello or answer
  ControlMessage<kHelloBytes> answer_;    // the peer's, to our hello
  Error failure_;
};

}  // namespace slime::tcp
