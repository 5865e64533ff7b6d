// One connection over a libfabric rail: an endpoint, and the side connection beside it
// (side_connection.h).
//
// The parts of a channel
//   Setup         connects both ends: hellos, and the first write of each (setup.h)
//   Sender        works of this end, from post() to kSent (sender.h)
//   Arrivals      works of the peer, until poll() has returned them (arrivals.h)
//   RefusalWatch  finds works of the peer that the provider has dropped silently (arrivals.h)
// The channel itself reads completions and messages, gives each to the part that it belongs to, and
// keeps the first failure. Completions are in channel.cc, messages in channel_messages.cc, failure
// its sentences, and end in channel_end.cc.
//
// States
//   kSetUp    connect() has not returned kOk yet
//   kReady    both ends are connected
//   kBroken   failed, but what is done may still be in the completion queue: a second at most
//   kFailed   poll() has returned the failure, or set-up failed
//   kFenced   the endpoint is closed, or in the rail's ClosingEndpoints
// fail_with() leads from the first two to kBroken, fence() from each to kFenced.
//
// The completion queue has places for all works of both ends that can be under way, for the read
// behind silent writes (sender.h), and for kArrivals of a peer whose NIC confirms by itself.
//
// Thread: that of the channel's owner (transports/rail.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transports/fabric/arrivals.h"
#include "transports/fabric/endpoint.h"
#include "transports/fabric/sender.h"
#include "transports/fabric/setup.h"
#include "transports/fabric/side_connection.h"
#include "transports/rail.h"

namespace slime::fabric {

class FabricRail;

inline constexpr size_t kArrivals = 4096;

// What the endpoint of a channel of this rail is opened with.
EndpointSizes channel_sizes(const RailCaps& caps, uint32_t depth);

class FabricChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(FabricRail& rail, const ChannelOptions& options);
  ~FabricChannel() override;

  ChannelAddress address() const override { return address_; }
  Status connect(const ChannelAddress& peer) override;
  Status post(std::span<const Work> works, size_t* taken) override;
  Status poll(std::span<Done> done, size_t* count) override;
  void fence() override;
  bool silent_for(uint64_t ns) override;
  const Error& failure() const override { return failure_; }
  std::string peer_name() const override { return peer_name_; }

 private:
  enum class State : uint8_t { kSetUp, kReady, kBroken, kFailed, kFenced };

  FabricChannel(FabricRail& rail, const ChannelOptions& options, Endpoint endpoint,
                std::unique_ptr<SideConnection> side_connection);

  // channel.cc
  size_t read(size_t room);
  void take(const fi_cq_data_entry& entry);
  size_t take_error(long code);
  void post_more();
  void report_arrivals(std::span<Done> done, size_t* count);
  void watch(bool found);

  // channel_messages.cc
  void read_messages();
  Result<void> take_message(SideMessage message, std::span<const uint32_t> words);
  Result<void> take_hello(std::span<const uint32_t> words);
  void exchange_counts(uint64_t now_ns);

  // channel_end.cc
  void fail_with(Error error);  // keeps the first one
  Status give_up(Error error);  // in the set-up
  void announce_failure();
  void end();
  std::string where() const;  // "rail efa_0 to 10.0.0.2:4711"

  FabricRail& rail_;
  const ChannelOptions options_;
  State state_ = State::kSetUp;
  Endpoint endpoint_;
  std::unique_ptr<SideConnection> side_connection_;
  const ChannelAddress address_;  // of the side connection
  std::string peer_name_;

  Setup setup_;
  Sender sender_;
  Arrivals arrivals_;
  RefusalWatch refusals_;

  uint64_t messages_due_ns_ = 0;
  uint64_t last_completed_ns_ = 0;  // when a completion was found last
  uint64_t broken_ns_ = 0;          // until when completions may come in kBroken
  bool failure_announced_ = false;  // kFailed was sent
  bool peer_ended_ = false;         // kEnd has arrived
  Error failure_;
};

// What the channel says when it fails: what was under way, the exact code, what to try. It puts in
// front where that was.
// `description`: Endpoint::describe(), `code`: of libfabric, positive.
Error completion_error(const std::string& description, int code, uint64_t undelivered_works);
Error post_error(const Domain& domain, long code, const Work& work);  // the provider refused it
Error work_error(const FabricRail& rail, const Work& work);           // Sender::is_valid() did
Error refusal_error(const Domain& domain, uint64_t refused);          // RefusalWatch

}  // namespace slime::fabric
