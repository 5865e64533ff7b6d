// The channels of a link during set-up, at one end.
//
// Some rails may not reach the peer's: a cable is out, a NIC is in another network. The link starts
// with those that connect at both ends soon after the first, and the others join it later, as rails
// that have been down do (link/rejoin.h).
//
// Order of calls: check_pairs(), open(), connect() until it returns something else than kAgain,
// use() with what the peer has connected, and take(). Thread: that of the set-up.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "link/link_parts.h"
#include "link/setup/handshake.h"

namespace slime {

class ChannelSet {
 public:
  // The poller of each rail's channels; nullptr: it has none. An empty function: none has.
  using Pollers = std::function<Poller*(const Rail&)>;

  // A channel for each pair, with these options; several confirm the delivery in any case, as works
  // may be repeated.
  ChannelSet(Device& device, std::span<const RailPair> pairs, const ChannelOptions& options,
             const Pollers& pollers = {});

  // Whether the rails of the channels can reach those of the peer, and how fast.
  Result<void> check_pairs(const RailDescriptions& peer, const std::string& peer_name);
  // Opens all. Those that cannot be opened have failed, unless none can be.
  Result<void> open(const RegisteredBuffer& inbox, Side* side);
  // kOk: all are connected, or some, and the others have had their time. Another status than that
  // and kAgain: none can be.
  // `others_ns`: the time that the others have after the first.
  Status connect(const Side& peer, uint64_t now_ns, uint64_t others_ns);
  uint32_t connected() const { return connected_; }  // a bit each
  // Ends those that are not connected at both ends. False: none is.
  bool use(uint32_t peer_connected);
  std::string failures() const;  // of the channels that are not connected, one after the other
  // "the link starts with 1 of 2 rails; ..."; empty: with all.
  std::string left_out() const;
  std::vector<LinkChannel> take() { return std::move(channels_); }

 private:
  bool in_use(size_t i) const { return (connected_ >> i & 1) != 0; }
  std::string why_not(size_t i) const;

  Device& device_;
  ChannelOptions options_;
  std::vector<LinkChannel> channels_;
  std::vector<size_t> peer_rails_;       // of the channels: positions in the peer's device
  std::vector<std::string> peer_names_;  // of those rails
  uint32_t connected_ = 0, failed_ = 0;  // a bit each; use() clears bits of the first
  uint32_t reached_ = 0;                 // as connected_ was before that
  uint32_t unopened_there_ = 0;          // of failed_: the peer could not open them
  uint64_t looked_ns_ = 0, waited_ns_ = 0;
};

}  // namespace slime
