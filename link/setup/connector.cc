// The connecting end of the handshake (handshake.h).
//
// States: the stages of HandshakeEnd. A failure that may pass (base/net/dialer.h) before the
// confirm has been sent puts it back to kConnect, for connect_timeout at most. Connecting and the
// hello share one connect_timeout, the welcome has request_timeout, and the stages after it share
// another connect_timeout. Thread: the one that calls step().
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/interfaces/interfaces.h"
#include "base/net/dialer.h"
#include "base/process.h"
#include "link/setup/handshake_end.h"
#include "link/setup/resume.h"
#include "settings/times.h"

namespace slime {
namespace {

class LinkConnectorImpl final : public LinkConnector, private HandshakeEnd {
 public:
  // `name`: of the listener's process; empty: it did not say.
  LinkConnectorImpl(Devices& devices, Device& device, const SocketAddress& listener,
                    std::string name, const Nonce& nonce, const LinkId& link,
                    const LinkOwner& owner, int traffic_class)
      : HandshakeEnd(
            devices, device, true, owner, traffic_class, "connect to",
            name.empty() ? listener.to_string() : name + " (" + listener.to_string() + ")"),
        listener_(listener),
        listener_name_(std::move(name)),
        dialer_(listener, {.pause_ns = times::kCommRedial}) {
    hello_.value.nonce = nonce;
    hello_.value.link = id_ = link;
    hello_.value.rails = describe_rails(device.rails());
    hello_.value.words = owner.offer();
    hello_.value.name = own_name();
  }

  Result<std::unique_ptr<LinkParts>> step() override {
    const Status status = advance();
    if (status == Status::kAgain) return nullptr;
    if (status != Status::kOk) return fail(error());
    auto parts = take();
    if (parts->lifeline_seconds > 0) {
      parts->lifeline_dialer =
          make_lifeline_dialer(devices_.clock(), listener_, hello_.value.nonce, id_);
    }
    return parts;
  }

 private:
  Status run(Stage stage) override {
    const Status status = run_stage(stage);
    if (status == Status::kOk || status == Status::kAgain) return status;
    if (Dialer::may_pass(error_) && may_dial_again()) return dial_again();
    if (stage_ <= Stage::kWelcome) error_.what += own_address();
    return status;
  }

  Status run_stage(Stage stage) {
    switch (stage) {
      case Stage::kConnect:
        return connect();
      case Stage::kHello:
        return send_hello();
      case Stage::kWelcome:
        return receive_welcome();
      case Stage::kConfirm:
        return confirm_.send(fd_, &error_);
      default:
        return run_common(stage);
    }
  }

  Status connect() {
    if (!std::exchange(dialed_, true)) allow(devices_.settings().connect_timeout);
    const Status status = dialer_.progress(devices_.clock().now_ns(), &error_);
    if (status == Status::kOk) fd_ = std::move(dialer_.fd());
    return status;
  }

  // A listener with more callers, or handshakes, than places resets those that keep it waiting, and
  // a network may break a connection. The rails have limits of their own.
  bool may_dial_again() const {
    if (stage_ > Stage::kConfirm) return false;
    return !again_until_ || !again_until_->passed();
  }

  Status dial_again() {
    const double seconds = devices_.settings().connect_timeout;
    if (!again_until_) again_until_ = Deadline(devices_.clock(), seconds_to_ns(seconds));
    allow(seconds);
    fd_.reset();
    hello_.restart();
    welcome_.restart();
    confirm_.restart();
    channels_.reset();  // before the memory that they use
    stage_ = Stage::kConnect;
    return dialer_.again(devices_.clock().now_ns(), &error_);
  }

  Status send_hello() {
    const Status status = hello_.send(fd_, &error_);
    // The peer may call accept much later, and answers only then.
    if (status == Status::kOk) allow(devices_.settings().request_timeout);
    return status;
  }

  // Checks every field of the welcome before it is used: it comes from outside.
  Status receive_welcome() {
    if (const Status status = receive(&welcome_); status != Status::kOk) return status;
    const Welcome& welcome = welcome_.value;
    peer_ = peer_name(welcome.name, listener_);
    if (welcome.channels == 0) return refuse("it refused: " + printable_field(welcome.reason));
    const auto wanted = std::max<size_t>(welcome.rails.count, device_.rails().size());
    if (welcome.rails.count < 1 || welcome.rails.count > kMaxRails || welcome.channels != wanted ||
        !owner_.accepts(welcome.words) || !pairs_fit(welcome)) {
      return refuse("its welcome does not fit what was offered");
    }
    allow(devices_.settings().connect_timeout);
    if (auto opened = open_channels(welcome.rails); !opened) {
      return fail_with(std::move(opened.error()));
    }
    (void)begin_channels();
    return Status::kOk;
  }

  bool pairs_fit(const Welcome& welcome) const {
    return std::ranges::all_of(
        std::span(welcome.pairs).first(welcome.channels), [&](const RailPair& pair) {
          return pair.active < device_.rails().size() && pair.passive < welcome.rails.count;
        });
  }

  Status refuse(const std::string& why) {
    return fail_with(make_error(Status::kRemote, 0, "%s", why.c_str()));
  }

  std::string too_late() const override {
    const char* const what = stage_ == Stage::kConnect    ? "the TCP connection"
                             : stage_ == Stage::kWelcome  ? "the peer to accept"
                             : stage_ == Stage::kChannels ? "the rails to connect"
                                                          : "the handshake";
    const std::string& last = dialer_.last_failure();
    return std::string("no answer in time while waiting for ") + what + channel_failures() +
           (last.empty() ? "" : "; the last failure: " + last) +
           (stage_ <= Stage::kWelcome ? own_address() : "");
  }

  // Its name is host:process; an address may hold the beginning of a long one only.
  bool listener_is_here() const {
    const size_t colon = listener_name_.rfind(':');
    if (colon != std::string::npos) return listener_name_.substr(0, colon) == own_host_name();
    return !listener_name_.empty() && own_host_name().starts_with(listener_name_);
  }

  // Bridges of containers have the same address on many hosts.
  std::string own_address() const {
    const std::string interface = listener_is_here() ? "" : interface_with(listener_);
    if (interface.empty()) return "";
    return "; it offers " + listener_.host() + ", which is this host's " + interface +
           ": give NCCL_SLIME_IFNAME there an interface that other hosts reach";
  }

  const SocketAddress listener_;
  const std::string listener_name_;
  Dialer dialer_;
  bool dialed_ = false;                  // the time to connect counts from the first try
  std::optional<Deadline> again_until_;  // from the first connection that was reset
  HandshakeMessage<Hello> hello_;
};

}  // namespace

Result<std::unique_ptr<LinkConnector>> LinkConnector::open(Devices& devices, int device_index,
                                                           const LinkAddress& to,
                                                           const LinkOwner& owner,
                                                           int traffic_class) {
  Device* device = devices.device(device_index);
  if (device == nullptr) {
    return fail(make_error(Status::kInvalid, 0, "connect: no device %d", device_index));
  }
  const auto fields = std::bit_cast<AddressFields>(to);
  if (fields.preamble.magic != kMagic || fields.preamble.version != kProtocolVersion) {
    return fail(make_error(
        Status::kInvalid, 0,
        "connect on device %s: this is no handle of libnet-slime (%s); do all processes load "
        "the same version?",
        device->properties().name.c_str(),
        describe_mismatch(fields.preamble, MessageType::kHello).c_str()));
  }
  auto listener = SocketAddress::unpack(fields.address);
  if (!listener) return fail(listener.error());
  auto link = random_nonce();
  if (!link) return fail(link.error());
  return std::make_unique<LinkConnectorImpl>(devices, *device, *listener,
                                             printable_field(fields.name), fields.nonce, *link,
                                             owner, traffic_class);
}

}  // namespace slime
