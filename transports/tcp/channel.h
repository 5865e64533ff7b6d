// One connection over a tcp rail. Sentences about failures are in channel_errors.cc.
//
// States: connecting -> ready -> broken -> failed, or fenced from any. The first failure stays; a
// broken channel fails in a poll that began broken and has read all. Invariants: a channel that is
// failed or fenced has ended its output; one frame at most, of a write, a control frame or an
// answer, is sent in part, and nothing else is sent before its end; Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/net/socket.h"
#include "transports/channel_common.h"
#include "transports/rail.h"
#include "transports/tcp/frames/frame_reader.h"
#include "transports/tcp/frames/send_queue.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/pacer.h"
#include "transports/tcp/poller.h"

namespace slime::tcp {

class TcpRail;

class TcpChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(TcpRail& rail, const ChannelOptions& options);
  ~TcpChannel() override;

  ChannelAddress address() const override { return handshake_.address(); }
  Status connect(const ChannelAddress& peer) override;
  Status post(std::span<const Work> works, size_t* taken) override;
  Status poll(std::span<Done> done, size_t* count) override;
  Status arm() override;
  void disarm() override;
  void fence() override;
  bool silent_for(uint64_t ns) override { return is_silent(fd_, ns); }
  const Error& failure() const override { return failure_; }
  std::string peer_name() const override { return handshake_.peer().to_string(); }

 private:
  enum class State : uint8_t {
    kConnecting,  // connect() has not returned kOk
    kReady,
    kBroken,  // failed, but arrivals may still be in the socket
    kFailed,
    kFenced,
  };

  TcpChannel(TcpRail& rail, const ChannelOptions& options);

  // Data path.
  Status become_ready();
  void stop_watching();
  bool valid(const Work& work);
  void append(std::span<const Work> works);
  bool has_output() const { return queue_.wants_to_send(reader_.awaited()) || !answers_.empty(); }
  bool blocked() const { return queue_.blocked() || answer_blocked_; }
  bool leaves_ack(size_t reported);
  void flush();
  void send_works();
  void send_answer();
  ssize_t send_vectors(std::span<iovec> vectors);
  void after_send(ssize_t result, size_t asked);
  size_t receive(std::span<Done> done);
  void note_refusals();
  void watch(uint64_t now_ns);

  // Failures. fail_with() keeps the first one.
  void fail_with(Error error, State state);
  Error socket_error(const char* doing, int code) const;
  Error read_error() const;
  Error frame_error() const;
  Error too_many_refusals() const;
  std::string undelivered_works() const;
  Error work_error(const Work& work) const;
  Error ack_error() const;
  std::string refusal_note() const;
  std::string where() const;  // "rail eth0 to 10.0.0.2:4711"

  TcpRail& rail_;
  const TcpPoller* const poller_;  // nullptr: it is polled
  const uint64_t tag_;
  bool watched_ = false;  // its socket is in the poller's set
  Handshake handshake_;
  State state_ = State::kConnecting;
  Fd fd_;                           // once connect() has returned something else than kAgain
  uint32_t unread_polls_left_ = 1;  // polls that may report kSent without a look at the socket
  Pacer pacer_;                     // while the kernel takes no more
  uint32_t idle_polls_ = 0;
  uint64_t watch_at_ns_ = 0;
  SilenceWatch silence_;
  const ChannelDepth depth_;
  SendQueue queue_;
  Reads reads_;
  Answers answers_;
  bool answers_due_ = false;     // it is their turn
  bool ack_left_ = false;        // for the next post or poll
  bool answer_blocked_ = false;  // the kernel took less of an answer than it was offered
  FrameReader reader_;
  Error failure_;
};

}  // namespace slime::tcp
