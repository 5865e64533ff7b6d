// One connection over a verbs rail: one to eight queue pairs (lanes) and the completion queue that
// they share. Set-up is in channel_setup.cc, the data path in channel.cc, sentences about failures
// in channel_errors.cc.
//
// States
//   kNew        queue pairs are in INIT, connect() has not been called
//   kGreeting   the first end (ChannelOptions): RTR, waiting for the other's hello
//               the other end: RTS; its hello is on its way
//   kReady      RTS at both ends
//   kBroken     failed, but arrivals may still be in the completion queue
//   kFailed     poll() has returned the failure, or set-up failed
//   kFenced     queue pairs are gone; what they had confirmed waits in kept_
//
// Sends. Each post() is one chain of work requests on one lane. Its last one is signalled, and one
// in 32 of a longer chain: a completion stands for all before it on its lane. A lane's ring keeps
// the cookies.
//
// Receives. A write with immediate consumes a receive work request of ours, which has no buffer:
// the bytes go where the write says. kReceives of them are posted on each lane, and given back in
// batches. A peer that sends more than that before we poll is told to wait by the NIC (RNR), and
// tries again without end.
//
// The completion queue has a place for each work request that is posted, so it cannot overrun.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transports/rail.h"
#include "transports/verbs/queue_pair.h"
#include "transports/verbs/wire.h"

namespace slime::verbs {

class VerbsRail;

inline constexpr uint32_t kReceives = 1024;    // per lane
inline constexpr uint32_t kReceiveBatch = 64;  // given back with one call
inline constexpr uint32_t kSignalEvery = 32;
inline constexpr uint32_t kInlineBytes = 128;  // asked for
inline constexpr uint32_t kOwnSends = 4;       // hello, keep-alive, close

// What a completion belongs to: wr_id.
struct WorkId {
  enum class Kind : uint8_t { kWorks, kHello, kKeepAlive, kReceive };
  Kind kind = Kind::kWorks;
  uint8_t lane = 0;
  uint16_t unused = 0;
  uint32_t position = 0;  // kWorks: of the newest work that is done with it

  uint64_t pack() const { return std::bit_cast<uint64_t>(*this); }
  static WorkId unpack(uint64_t bits) { return std::bit_cast<WorkId>(bits); }
};
static_assert(sizeof(WorkId) == sizeof(uint64_t));

// A queue pair and the works on it.
struct Lane {
  QueuePair pair;
  uint32_t first_psn = 0;
  std::vector<uint64_t> cookies;  // a ring
  uint32_t posted = 0, done = 0, reported = 0;
  uint32_t unsignaled = 0;  // works since the last that asks for a completion
  uint32_t receives = 0;    // posted, and their completion not polled
  bool has_closed = false;  // the peer did
};

class VerbsChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(VerbsRail& rail, const ChannelOptions& options);
  ~VerbsChannel() override;

  ChannelAddress address() const override { return pack_endpoint(own_); }
  Status connect(const ChannelAddress& peer) override;
  Status post(std::span<const Work> works, size_t* taken) override;
  Status poll(std::span<Done> done, size_t* count) override;
  void fence() override;
  const Error& failure() const override { return failure_; }
  std::string peer_name() const override;

 private:
  enum class State : uint8_t { kNew, kGreeting, kReady, kBroken, kFailed, kFenced };

  VerbsChannel(VerbsRail& rail, const ChannelOptions& options, std::shared_ptr<const Port> port)
      : rail_(rail), options_(options), port_(std::move(port)) {}

  // channel_setup.cc
  Result<void> create_queues();
  Result<void> prepare(Lane& lane);
  Result<void> begin(const ChannelAddress& peer);
  Result<void> greet();
  Result<void> take_setup_completion(const ibv_wc& completion);
  Result<void> take_hello(const ibv_wc& completion);
  Status give_up(Error error);

  // channel.cc
  Status prepare_work(const Work& work, Lane& lane, uint32_t position, size_t index);
  size_t take_sent(std::span<Done> done);
  void take(const ibv_wc& completion, std::span<Done> done, size_t* count);
  static void complete(Lane& lane, uint32_t position);
  void take_close(Lane& lane);
  bool post_receives(Lane& lane, uint32_t count, bool with_hello);
  void watch(uint64_t now_ns);
  Result<void> check_port();
  void keep_alive(uint64_t now_ns);
  void drain();
  bool none_under_way();
  Done take_arrival(const ibv_wc& completion);

  // channel_errors.cc. fail_with() keeps the first one.
  void fail_with(Error error, State state);
  Error completion_error(const ibv_wc& completion) const;
  Error work_error(const Work& work) const;
  uint64_t undelivered_works() const;
  std::string where() const;  // "rail mlx5_0 to fe80::1 (qp 0x11)"

  VerbsRail& rail_;
  const ChannelOptions options_;
  const std::shared_ptr<const Port> port_;  // as it was when the channel was opened
  uint32_t changes_ = port_->changes;       // of it that watch() has looked at
  Endpoint own_, peer_;
  Path path_;
  State state_ = State::kNew;
  CompletionQueue completions_;  // outlives the queue pairs, as the next
  std::unique_ptr<Registered<Hellos>> hellos_;
  std::vector<Lane> lanes_;
  size_t next_lane_ = 0;
  uint32_t outstanding_ = 0;  // works posted whose kSent poll() has not returned

  // One chain, made once; the data path fills in what differs.
  std::vector<ibv_send_wr> sends_;
  std::vector<ibv_sge> pieces_;
  std::array<ibv_recv_wr, kReceiveBatch> receives_ = {};

  std::deque<Done> kept_;  // arrivals that came during set-up, or that the fence found

  uint64_t deadline_ns_ = 0;  // of connect()
  uint64_t watch_due_ns_ = 0;
  bool completed_ = false;          // something has, since watch() last looked
  uint64_t last_completed_ns_ = 0;  // when it saw that
  bool keeping_alive_ = false;      // a keep-alive is under way
  uint32_t kept_alive_ = 0;         // keep-alives so far
  Error failure_;
};

}  // namespace slime::verbs
