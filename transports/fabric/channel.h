// One connection over a libfabric rail: an endpoint, and the side connection beside it
// (side_connection.h). Set-up and end are in channel_setup.cc, the data path in channel.cc, what
// the ends tell each other in channel_messages.cc, sentences about failures in channel_errors.cc.
//
// Arrivals of the peer while this end is in kExpecting or kWarming wait in kept_.
//
// The completion queue has places for all works of both ends that can be under way, and for
// kArrivals of a peer whose NIC confirms by itself.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "transports/fabric/endpoint.h"
#include "transports/fabric/side_connection.h"
#include "transports/fabric/window.h"
#include "transports/rail.h"

namespace slime::fabric {

class FabricRail;

inline constexpr uint32_t kSendQueueDepth = 256;
inline constexpr size_t kArrivals = 4096;
// A peer's write with remote data takes one until it is read; a peer that finds none asks again.
inline constexpr size_t kReceives = 2 * kSendQueueDepth;
inline constexpr size_t kReadAtOnce = 32;
// Works that FI_MORE may hold back in a row: fewer than any provider can stage.
inline constexpr size_t kMostHeldBack = 16;

class FabricChannel final : public Channel {
 public:
  static Result<std::unique_ptr<Channel>> open(FabricRail& rail, const ChannelOptions& options);
  static EndpointSizes sizes_on(const FabricRail& rail);
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
  enum class State : uint8_t {
    kNew,        // connect() has not been called
    kDialing,    // the side connection is being set up
    kGreeting,   // our hello was sent, the peer's is awaited
    kExpecting,  // the peer's endpoint is known; its kReady is awaited
    // The first writes of both ends are under way: providers open connections with them, and many
    // need the polls of both ends for that.
    kWarming,
    kReady,
    kBroken,  // failed, but arrivals may still be in the completion queue: for a second at most
    kFailed,  // poll() has returned the failure, or set-up failed
    kFenced,  // the endpoint is closed, or in the rail's ClosingEndpoints
  };

  FabricChannel(FabricRail& rail, const ChannelOptions& options, Endpoint endpoint,
                std::unique_ptr<SideConnection> side_connection);

  // channel_setup.cc
  void send_hello();
  Result<void> take_hello(std::span<const uint32_t> words);
  Result<void> warm_up();
  Status give_up(Error error);
  void await_first_writes();
  void announce_failure();
  void end();

  // channel.cc
  bool valid(const Work& work);
  size_t hand_over(std::span<const Work> works);
  long write(const Work& work, bool more);
  long write(iovec piece, void* description, const fi_rma_iov& target, void* context, uint64_t data,
             uint64_t flags);
  void hand_over_waiting();
  size_t read(size_t room);
  void take(const fi_cq_data_entry& entry);
  size_t take_error(long code);
  void report_arrivals(std::span<Done> done, size_t* count);
  void watch(bool found);

  // channel_messages.cc
  void read_messages();
  Result<void> take_message(SideMessage message, std::span<const uint32_t> words);
  bool is_cancelled(uint32_t immediate);
  void report_completed(uint64_t now_ns);
  void look_for_refused_works();

  // channel_errors.cc. fail_with() keeps the first one.
  void fail_with(Error error);
  Error entry_error(const fi_cq_err_entry& entry) const;
  Error post_error(long code, const Work& work) const;
  Error work_error(const Work& work) const;
  Error refusal_error(uint64_t refused) const;
  uint64_t undelivered_works() const { return window_.incomplete_count() + waiting_.size(); }
  std::string where() const;  // "rail efa_0 to 10.0.0.2:4711"

  FabricRail& rail_;
  const ChannelOptions options_;
  State state_ = State::kNew;
  Endpoint endpoint_;
  std::unique_ptr<SideConnection> side_connection_;
  const ChannelAddress address_;  // of the side connection
  std::string peer_name_;
  Hello peer_;
  fi_addr_t peer_address_ = FI_ADDR_UNSPEC;
  bool peer_wants_confirmations_ = false;
  bool hello_sent_ = false;         // kHello was sent
  bool failure_announced_ = false;  // kFailed was sent
  bool peer_ended_ = false;         // kEnd has arrived

  Window window_;
  std::deque<Work> waiting_;  // taken by post(), and not yet by the provider
  fi_context2 warm_up_ = {};
  bool warm_up_posted_ = false, warm_up_complete_ = false, peer_is_warm_ = false;

  std::vector<Done> kept_;           // arrivals that poll() has not returned
  std::vector<uint32_t> reported_;   // immediates of one poll's arrivals, for the peer
  std::vector<uint32_t> cancelled_;  // of the peer's works that must not be reported
  uint64_t arrivals_ = 0;

  uint64_t deadline_ns_ = 0;  // of connect()
  uint64_t messages_due_ns_ = 0;
  // The count of complete works: ours when the watch last looked and when it was told to the peer,
  // and the peer's as it told us.
  uint64_t seen_complete_ = 0, reported_complete_ = 0, peer_complete_ = 0;
  uint64_t report_due_ns_ = 0;
  uint32_t empty_reads_ = 0;        // since peer_complete_ was told
  uint64_t last_completed_ns_ = 0;  // when a completion was found last
  uint64_t broken_ns_ = 0;          // until when arrivals may come in kBroken
  Error failure_;
};

}  // namespace slime::fabric
