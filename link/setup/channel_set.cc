#include "link/setup/channel_set.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "link/setup/unopened_channel.h"

namespace slime {

ChannelSet::ChannelSet(Device& device, std::span<const RailPair> pairs,
                       const ChannelOptions& options, const Pollers& pollers)
    : device_(device), options_(options), peer_names_(pairs.size()) {
  options_.confirm_delivery |= pairs.size() > 1;
  for (const RailPair& pair : pairs) {
    const size_t index = options.active ? pair.active : pair.passive;
    const Rail& rail = *device_.rails()[index];
    channels_.push_back(
        {nullptr, index, rail.caps().speed_mbps, true, pollers ? pollers(rail) : nullptr});
    peer_rails_.push_back(options.active ? pair.passive : pair.active);
  }
}

Result<void> ChannelSet::check_pairs(const RailDescriptions& peer, const std::string& peer_name) {
  const RailDescriptions own = describe_rails(device_.rails());
  const std::string name = printable_field(own_name());
  for (size_t i = 0; i < channels_.size(); ++i) {
    const RailDescription& mine = own.all[channels_[i].device_rail_index];
    const RailDescription& theirs = peer.all[peer_rails_[i]];
    if (auto fit = check_fit({mine, name}, {theirs, peer_name}); !fit) return fit;
    channels_[i].speed_mbps = common_speed_mbps(mine, theirs);
    peer_names_[i] = printable_field(theirs.name);
  }
  return {};
}

Result<void> ChannelSet::open(const RegisteredBuffer& inbox, Side* side) {
  side->inbox_address = reinterpret_cast<uint64_t>(inbox.data());
  size_t unopened = 0;
  for (size_t i = 0; i < channels_.size(); ++i) {
    const size_t rail = channels_[i].device_rail_index;
    options_.poller = channels_[i].poller;
    auto channel = device_.rails()[rail]->open_channel(options_);
    if (!channel) {
      Error why = std::move(channel.error());
      // Others are none of this rail's: settings, or what the whole process lacks.
      const bool of_rail = why.status == Status::kSystem || why.status == Status::kRemote;
      if (!of_rail || ++unopened == channels_.size()) return fail(std::move(why));
      why.what = "rail " + device_.rails()[rail]->caps().name + ": " + why.what;
      channel = std::make_unique<UnopenedChannel>(std::move(why));
    }
    side->channels[i] = (*channel)->address();
    side->inbox_keys[i] = inbox.region()->keys[rail].remote;
    channels_[i].channel = std::move(*channel);
  }
  return {};
}

// Connects all channels side by side. A process that was stopped has not waited, so of the time
// between two calls a quarter of the limit counts at most.
Status ChannelSet::connect(const Side& peer, uint64_t now_ns, uint64_t others_ns) {
  Status failure = Status::kRemote;
  bool waiting = false;
  for (size_t i = 0; i < channels_.size(); ++i) {
    if (((connected_ | failed_) >> i & 1) != 0) continue;
    const bool unopened_there = peer.channels[i] == UnopenedChannel::nobody();
    const Status status =
        unopened_there ? Status::kRemote : channels_[i].channel->connect(peer.channels[i]);
    if (unopened_there) unopened_there_ |= uint32_t{1} << i;
    waiting |= status == Status::kAgain;
    if (status == Status::kOk) connected_ |= uint32_t{1} << i;
    if (status == Status::kOk || status == Status::kAgain) continue;
    failed_ |= uint32_t{1} << i;
    failure = status;
  }
  if (connected_ == 0) return waiting ? Status::kAgain : failure;
  const uint64_t before_ns = std::exchange(looked_ns_, now_ns);
  if (before_ns != 0) waited_ns_ += std::min(now_ns - before_ns, others_ns / 4);
  return waiting && waited_ns_ < others_ns ? Status::kAgain : Status::kOk;
}

bool ChannelSet::use(uint32_t peer_connected) {
  reached_ = connected_;
  connected_ &= peer_connected;
  for (size_t i = 0; i < channels_.size(); ++i) {
    channels_[i].connected = in_use(i);
    if (!in_use(i)) channels_[i].channel->fence();
  }
  return connected_ != 0;
}

std::string ChannelSet::why_not(size_t i) const {
  const LinkChannel& channel = channels_[i];
  const std::string pair = "rail " + device_.rails()[channel.device_rail_index]->caps().name +
                           " to the peer's " + peer_names_[i] + " (" +
                           channel.channel->peer_name() + ")";
  if ((unopened_there_ >> i & 1) != 0) {
    return pair + " could not be opened at the peer, whose log says why";
  }
  if ((failed_ >> i & 1) != 0) return channel.channel->failure().what;  // it names the rail
  const bool only_here = (reached_ >> i & 1) != 0;
  return pair + (only_here ? " has failed at the peer, whose log says why" : " does not connect");
}

std::string ChannelSet::failures() const {
  std::string text;
  for (size_t i = 0; i < channels_.size(); ++i) {
    if (!in_use(i)) text += (text.empty() ? "" : "; ") + why_not(i);
  }
  return text;
}

std::string ChannelSet::left_out() const {
  const auto used = static_cast<size_t>(std::popcount(connected_));
  if (used == channels_.size()) return "";
  return "the link starts with " + std::to_string(used) + " of " +
         std::to_string(channels_.size()) + " rails: " + failures();
}

}  // namespace slime
