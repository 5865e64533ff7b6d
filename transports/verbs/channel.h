// One connection over a verbs rail.
//
// The parts of a channel
//   Lanes         one to eight queue pairs, their completion queue, and the works on them (lanes.h)
//   Setup         connects the queue pairs, and checks the peer's hello (setup.h)
//   ChannelWatch  finds a dead NIC, a changed port, and a peer that has gone (channel_watch.h)
// The channel itself reads completions, gives each to the part that it belongs to, and keeps the
// first failure. Sentences about failures are in channel_errors.cc.
//
// States
//   kSetUp      connect() has not returned kOk yet
//   kReady      queue pairs are in RTS at both ends
//   kBroken     failed, but what is done may still be in the completion queue
//   kFailed     poll() has returned the failure, or set-up failed
//   kFenced     queue pairs are gone; what they had confirmed waits in kept_
// fail_with() leads from the first two to kBroken or kFailed, fence() from each to kFenced.
//
// Thread: that of the channel's owner (transports/rail.h).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "transports/rail.h"
#include "transports/verbs/channel_watch.h"
#include "transports/verbs/device/nic.h"
#include "transports/verbs/lanes.h"
#include "transports/verbs/setup.h"

namespace slime::verbs {

class VerbsRail;

class VerbsChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(VerbsRail& rail, const ChannelOptions& options);
  ~VerbsChannel() override;

  ChannelAddress address() const override { return pack_endpoint(setup_.own()); }
  Status connect(const ChannelAddress& peer) override;
  Status post(std::span<const Work> works, size_t* taken) override;
  Status arm() override;
  void disarm() override;
  Status poll(std::span<Done> done, size_t* count) override;
  void fence() override;
  const Error& failure() const override { return failure_; }
  std::string peer_name() const override;

 private:
  enum class State : uint8_t { kSetUp, kReady, kBroken, kFailed, kFenced };

  VerbsChannel(VerbsRail& rail, const ChannelOptions& options, std::shared_ptr<const Port> port);

  Result<void> take_setup_completion(const ibv_wc& completion);
  void take(const ibv_wc& completion, std::span<Done> done, size_t* count);
  void take_refusal(const WorkId& id, ibv_wc_status status);
  Done take_arrival(const ibv_wc& completion);
  void take_close(Lane& lane);
  bool may_be_confirmed() const;  // works under way, though the peer has closed
  void watch(uint64_t now_ns);
  void drain();

  void fail_with(Error error, State state);  // keeps the first one
  std::string where() const;                 // "rail mlx5_0 (qp 0x10) to fe80::1 (qp 0x11)"

  VerbsRail& rail_;
  const bool on_poller_;
  State state_ = State::kSetUp;
  uint64_t closed_until_ns_ = 0;  // until then works may be confirmed after the peer's close
  Lanes lanes_;
  Setup setup_;
  ChannelWatch watch_;
  std::deque<Done> kept_;  // arrivals that came during set-up, or that the fence found
  Error failure_;
};

// What the channel says when it fails: what was under way, the exact status, what to try. It puts
// in front where that was.
Error completion_error(const Nic& nic, const ibv_wc& completion, uint64_t undelivered_works);
Error work_error(const RailCaps& rail, const Work& work);  // Lanes::chain() refused it

}  // namespace slime::verbs
