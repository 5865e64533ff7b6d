// The connection beside the fabric: a channel over the kernel's TCP between the same two ends.
//
// libfabric's endpoints without connections (FI_EP_RDM) do not say that a peer's process has ended,
// drop at their end what was not read, and answer to whoever knows their name. The lifeline is set
// up and refuses strangers as every channel, hears of the peer's end from its kernel, and carries
// messages: what is sent by it arrives in order.
//
// A message is a head and up to kMaxWords words, each the immediate of a work without bytes.
//
// Threads: one at a time. What the connection does not take at once waits here, kMostWaiting words
// at most.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/rail.h"

namespace slime::fabric {

enum class LifelineMessage : uint8_t {
  kHello = 1,      // a Hello (hello.h)
  kReady = 2,      // writes may come
  kReported = 3,   // the immediates of arrivals that poll() has returned
  kComplete = 4,   // how many works of this end are complete: two words, the lower half first
  kCancelled = 5,  // the immediates of works that were under way when this end closed
  kFailed = 6,     // this end has failed; it writes nothing more
  kEnd = 7,        // this end does not touch the peer's endpoint any more; nothing follows
  kWarm = 8,       // the first write of this end is complete
};

class Lifeline {
 public:
  static constexpr size_t kMaxWords = 511;
  static constexpr size_t kMostWaiting = 1 << 14;

  explicit Lifeline(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}

  ChannelAddress address() const { return channel_->address(); }
  Status connect(const ChannelAddress& peer) { return channel_->connect(peer); }
  std::string peer_name() const { return channel_->peer_name(); }
  bool silent_for(uint64_t ns) { return channel_->silent_for(ns); }
  const Error& failure() const { return failure_.what.empty() ? channel_->failure() : failure_; }

  // Longer lists become several messages.
  void say(LifelineMessage message, std::span<const uint32_t> words = {});
  bool all_sent() const { return waiting_.empty(); }

  // Sends what waits, and takes in what has come. Then next() returns each message that is whole;
  // its words stay until the next poll(). A failure is for good, once next() has returned all that
  // had come.
  Status poll();
  bool next(LifelineMessage* message, std::span<const uint32_t>* words);

 private:
  void send();
  size_t read();
  Status fail_with(const char* what);

  std::unique_ptr<Channel> channel_;
  std::deque<uint32_t> waiting_;
  std::vector<uint32_t> incoming_;  // until the next poll()
  std::vector<uint32_t> arrived_;
  Status status_ = Status::kOk;  // of the channel
  size_t taken_ = 0;             // of arrived_
  Error failure_;                // of this class; the channel has its own
};

}  // namespace slime::fabric
