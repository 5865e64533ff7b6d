#include "engine/setup/handshake.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/process.h"

namespace slime {

ChannelSet::ChannelSet(Device& device, uint32_t count, bool active, int traffic_class)
    : device_(device), active_(active), traffic_class_(traffic_class) {
  for (uint32_t i = 0; i < count; ++i) {
    const size_t rail = i % device_.rails().size();
    channels_.push_back({nullptr, rail, device_.rails()[rail]->caps().speed_mbps});
  }
}

Result<void> ChannelSet::pair_with(const RailDescriptions& peer, const std::string& peer_name) {
  const RailDescriptions own = describe_rails(device_.rails());
  const std::string name = printable_field(own_name());
  for (size_t i = 0; i < channels_.size(); ++i) {
    const RailDescription& mine = own.all[channels_[i].device_rail_index];
    const RailDescription& theirs = peer.all[i % peer.count];
    if (auto fit = check_fit({mine, name}, {theirs, peer_name}); !fit) return fit;
    channels_[i].speed_mbps = common_speed_mbps(mine, theirs);
  }
  return {};
}

Result<void> ChannelSet::open(const RegisteredBuffer& inbox, Side* side) {
  side->inbox_address = reinterpret_cast<uint64_t>(inbox.data());
  // With several channels works may have to be repeated elsewhere, so "sent" must mean "arrived".
  const bool confirm = channels_.size() > 1;
  for (size_t i = 0; i < channels_.size(); ++i) {
    const size_t rail = channels_[i].device_rail_index;
    auto channel = device_.rails()[rail]->open_channel({active_, confirm, traffic_class_, active_});
    if (!channel) return fail(channel.error());
    side->channels[i] = (*channel)->address();
    side->inbox_keys[i] = inbox.region()->keys[rail].remote;
    channels_[i].channel = std::move(*channel);
  }
  return {};
}

Status ChannelSet::connect(const Side& peer) {
  bool all = true;
  for (connected_ = 0; connected_ < channels_.size(); ++connected_) {
    const Status status = channels_[connected_].channel->connect(peer.channels[connected_]);
    if (status == Status::kAgain) {
      all = false;
    } else if (status != Status::kOk) {
      return status;
    }
  }
  return all ? Status::kOk : Status::kAgain;
}

std::string ChannelSet::failure() const { return channels_[connected_].channel->failure().what; }

LinkParts ChannelSet::take(const Side& peer, uint32_t eager_max, std::string name) {
  LinkParts parts;
  parts.channels = std::move(channels_);
  parts.active = active_;
  parts.traffic_class = traffic_class_;
  parts.peer_inbox = {peer.inbox_address, peer.inbox_keys};
  parts.eager_max = eager_max;
  parts.peer = std::move(name);
  return parts;
}

std::array<char, 96> own_name() {
  std::array<char, 96> name = {};
  std::snprintf(name.data(), name.size(), "%.63s:%d", own_host_name().c_str(),
                static_cast<int>(getpid()));
  return name;
}

std::string peer_name(const std::array<char, 96>& name, const SocketAddress& address) {
  return printable_field(name) + " (" + address.host() + ")";
}

bool valid(const Preamble& preamble, MessageType type) {
  return preamble.magic == kMagic && preamble.version == kProtocolVersion &&
         preamble.type == static_cast<uint16_t>(type);
}

std::string describe_mismatch(const Preamble& preamble, MessageType expected) {
  char text[160];
  if (preamble.magic == kMagic && preamble.version != kProtocolVersion) {
    std::snprintf(
        text, sizeof text,
        "it speaks protocol version %u, this end %u: install the same plugin on all hosts",
        preamble.version, kProtocolVersion);
  } else if (preamble.magic == __builtin_bswap32(kMagic)) {
    std::snprintf(text, sizeof text, "it has another byte order, which is not supported");
  } else {
    std::snprintf(text, sizeof text, "message %u expected, got magic 0x%08x type %u",
                  static_cast<unsigned>(expected), preamble.magic, preamble.type);
  }
  return text;
}

}  // namespace slime
