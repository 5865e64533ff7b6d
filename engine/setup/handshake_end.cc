#include "engine/setup/handshake_end.h"

#include <utility>

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
  // With several channels, works may be repeated over another one, so "sent" must mean "arrived".
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

// Connects all channels side by side: one that is not ready yet does not hold the others up.
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

HandshakeEnd::HandshakeEnd(Fabric& fabric, Device& device, bool active, const CommOptions& options,
                           const char* what, std::string peer)
    : fabric_(fabric),
      device_(device),
      stage_(active ? Stage::kConnect : Stage::kWelcome),
      peer_(std::move(peer)),
      active_(active),
      traffic_class_(options.chosen_class(fabric.settings())),
      what_(what),
      deadline_(fabric.clock(), seconds_to_ns(fabric.settings().connect_timeout)),
      waits_since_ns_(fabric.clock().now_ns()) {}

// Runs stages until one has to wait. A time-out counts only if a stage that was tried after the
// deadline found nothing (base/deadline.h).
Status HandshakeEnd::advance() {
  if (status_ != Status::kAgain) return status_;
  const Deadline::Look look(deadline_);
  Status status = Status::kOk;
  while (stage_ != Stage::kDone) {
    status = run(stage_);
    if (status != Status::kOk) break;
    stage_ = static_cast<Stage>(static_cast<uint8_t>(stage_) + 1);
    waits_since_ns_ = fabric_.clock().now_ns();
  }
  if (status == Status::kAgain && look.expired()) {
    status = fail_with(make_error(Status::kTimeout, 0, "%s", too_late().c_str()));
  }
  if (status != Status::kOk && status != Status::kAgain) {
    error_ = make_error(status, error_.code, "%s peer %s on device %s: %s", what_, peer_.c_str(),
                        device_.properties().name.c_str(), error_.what.c_str());
  }
  return status_ = status;
}

LinkParts HandshakeEnd::take() {
  return channels_->take(peer_side(), welcome_.value.eager_max, std::move(peer_));
}

// The connector becomes the sender: its inbox takes CTS records, and its outbox is the image of the
// receiver's eager inbox. For the listener's end it is the other way round.
Result<void> HandshakeEnd::open_channels(const RailDescriptions& peer_rails) {
  const uint32_t count = welcome_.value.channels;
  const size_t cts_bytes = cts_inbox_bytes(count);
  const size_t eager_bytes = eager_inbox_bytes(welcome_.value.eager_max, count);
  auto inbox = RegisteredBuffer::make(device_, active_ ? cts_bytes : eager_bytes);
  if (!inbox) return fail(std::move(inbox.error()));
  inbox_ = std::make_unique<RegisteredBuffer>(std::move(*inbox));
  auto outbox = RegisteredBuffer::make(device_, active_ ? eager_bytes : cts_bytes);
  if (!outbox) return fail(std::move(outbox.error()));
  outbox_ = std::make_unique<RegisteredBuffer>(std::move(*outbox));
  channels_ = std::make_unique<ChannelSet>(device_, count, active_, traffic_class_);
  if (auto fit = channels_->pair_with(peer_rails, peer_); !fit) return fit;
  return channels_->open(*inbox_, active_ ? &confirm_.value.side : &welcome_.value.side);
}

Status HandshakeEnd::run_common(Stage stage) {
  switch (stage) {
    case Stage::kChannels:
      return connect_channels();
    case Stage::kReady:
      return ready_.send(fd_, &error_);
    case Stage::kPeerReady:
      return receive(&peer_ready_);
    default:
      return Status::kInternal;
  }
}

Status HandshakeEnd::connect_channels() {
  const Status status = channels_->connect(peer_side());
  if (status == Status::kOk || status == Status::kAgain) return status;
  return fail_with(make_error(status, 0, "%s", channels_->failure().c_str()));
}

Status HandshakeEnd::check(const Preamble& got, const Preamble& expected) {
  const auto type = static_cast<MessageType>(expected.type);
  if (valid(got, type)) return Status::kOk;
  return fail_with(make_error(Status::kRemote, 0, "%s", describe_mismatch(got, type).c_str()));
}

}  // namespace slime
