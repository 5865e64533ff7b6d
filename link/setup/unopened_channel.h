// Stands for the channel of a rail that could not be opened when its link was set up, as that of a
// NIC that has lost its address since the devices were opened. The link begins without it, as
// without one that does not connect, and opens a real channel when it tries the rail again
// (Rejoin).
//
// State: failed from the beginning. Thread: that of the set-up, then that of the link.
#pragma once

#include <string>
#include <utility>

#include "transports/rail.h"

namespace slime {

class UnopenedChannel final : public Channel {
 public:
  explicit UnopenedChannel(Error why) : why_(std::move(why)) {}

  ChannelAddress address() const override { return nobody(); }
  // No channel that is open has this address.
  static ChannelAddress nobody() {
    ChannelAddress address;
    address.fill(std::byte{0xff});
    return address;
  }
  Status connect(const ChannelAddress&) override { return why_.status; }
  Status post(std::span<const Work>, size_t* taken) override {
    *taken = 0;
    return why_.status;
  }
  Status poll(std::span<Done>, size_t* count) override {
    *count = 0;
    return fenced_ ? Status::kOk : why_.status;
  }
  void fence() override { fenced_ = true; }
  const Error& failure() const override { return why_; }
  std::string peer_name() const override { return "nobody"; }

 private:
  const Error why_;
  bool fenced_ = false;
};

}  // namespace slime
