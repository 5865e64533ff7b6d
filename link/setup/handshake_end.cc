#include "link/setup/handshake_end.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "settings/times.h"

namespace slime {

HandshakeEnd::HandshakeEnd(Devices& devices, Device& device, bool active, const LinkOwner& owner,
                           int traffic_class, const char* what, std::string peer)
    : devices_(devices),
      device_(device),
      owner_(owner),
      stage_(active ? Stage::kConnect : Stage::kWelcome),
      peer_(std::move(peer)),
      active_(active),
      traffic_class_(traffic_class),
      what_(what),
      deadline_(devices.clock(), seconds_to_ns(devices.settings().connect_timeout)),
      waits_since_ns_(devices.clock().now_ns()) {}

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
    waits_since_ns_ = devices_.clock().now_ns();
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

std::unique_ptr<LinkParts> HandshakeEnd::take() {
  if (const std::string without = channels_->left_out(); !without.empty()) {
    const std::string where = "peer " + peer_ + ", device " + device_.properties().name;
    const char* const next = devices_.settings().rail_retry > 0 ? "; they are tried again" : "";
    // A NIC that has no path makes a line for each peer, not for each of its links.
    const std::string rails = std::to_string(channels_->connected());
    if (devices_.first_time("start: " + where + ", with " + rails)) {
      SLIME_WARN("%s: %s%s", where.c_str(), without.c_str(), next);
    } else {
      SLIME_INFO("%s: %s%s", where.c_str(), without.c_str(), next);
    }
  }
  return std::make_unique<LinkParts>(
      LinkParts{std::move(*inbox_),
                std::move(*outbox_),
                owner_.memory_bytes(welcome_.value.words, active_, welcome_.value.channels),
                channels_->take(),
                active_,
                traffic_class_,
                std::move(peer_),
                welcome_.value.words,
                {peer_side().inbox_address, peer_side().inbox_keys},
                id_,
                owner_.lifeline_seconds(welcome_.value.words),
                owner_.channel_depth(welcome_.value.words)});
}

Result<void> HandshakeEnd::open_channels(const RailDescriptions& peer_rails) {
  const uint32_t count = welcome_.value.channels;
  const LinkMemoryBytes bytes = owner_.memory_bytes(welcome_.value.words, active_, count);
  auto inbox = RegisteredBuffer::make(device_, link_memory_bytes(bytes.inbox, count));
  if (!inbox) return fail(std::move(inbox.error()));
  inbox_ = std::make_unique<RegisteredBuffer>(std::move(*inbox));
  auto outbox = RegisteredBuffer::make(device_, link_memory_bytes(bytes.outbox, count));
  if (!outbox) return fail(std::move(outbox.error()));
  outbox_ = std::make_unique<RegisteredBuffer>(std::move(*outbox));
  channels_ = std::make_unique<ChannelSet>(
      device_, std::span(welcome_.value.pairs).first(count),
      ChannelOptions{.active = active_,
                     .confirm_delivery = owner_.lifeline_seconds(welcome_.value.words) > 0,
                     .traffic_class = traffic_class_,
                     .first = active_,
                     .depth = owner_.channel_depth(welcome_.value.words),
                     .tag = tag_of(id_, active_)},
      [this](const Rail& rail) { return owner_.poller(rail, welcome_.value.words, active_); });
  if (auto fit = channels_->check_pairs(peer_rails, peer_); !fit) return fit;
  return channels_->open(*inbox_, active_ ? &confirm_.value.side : &welcome_.value.side);
}

Status HandshakeEnd::run_common(Stage stage) {
  switch (stage) {
    case Stage::kChannels:
      return connect_channels();
    case Stage::kReady:
      return ready_.send(fd_, &error_);
    case Stage::kPeerReady:
      return agree_on_channels();
    default:
      return Status::kInternal;
  }
}

// May be called before the stage kChannels, which gets the result.
Status HandshakeEnd::begin_channels() {
  const uint64_t limit_ns = seconds_to_ns(devices_.settings().connect_timeout) / 4;
  return channels_->connect(peer_side(), devices_.clock().now_ns(),
                            std::min(times::kOtherChannels, limit_ns));
}

// What keeps the channels from connecting, as the end of a sentence.
std::string HandshakeEnd::channel_failures() const {
  return stage_ == Stage::kChannels ? ": " + channels_->failures() : "";
}

Status HandshakeEnd::connect_channels() {
  const Status status = begin_channels();
  if (status == Status::kAgain) return status;
  if (status != Status::kOk) {
    return fail_with(make_error(status, 0, "%s", channels_->failures().c_str()));
  }
  ready_.value.connected = channels_->connected();
  return status;
}

// Both ends know what the other has connected, and so use the same.
Status HandshakeEnd::agree_on_channels() {
  if (const Status status = receive(&peer_ready_); status != Status::kOk) return status;
  if (channels_->use(peer_ready_.value.connected)) return Status::kOk;
  return fail_with(make_error(Status::kRemote, 0, "no rail connects at both ends: %s",
                              channels_->failures().c_str()));
}

Status HandshakeEnd::check(const Preamble& got, const Preamble& expected) {
  const auto type = static_cast<MessageType>(expected.type);
  if (valid(got, type)) return Status::kOk;
  return fail_with(make_error(Status::kRemote, 0, "%s", describe_mismatch(got, type).c_str()));
}

}  // namespace slime
