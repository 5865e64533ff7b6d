// The connecting end of the handshake (handshake.h): it becomes the sender.
#include <algorithm>
#include <optional>

#include "engine/sender/send_comm.h"
#include "engine/setup/handshake.h"

#include "settings/times.h"

namespace slime {
namespace {

class ConnectorImpl final : public Connector {
 public:
  ConnectorImpl(Fabric& fabric, Device& device, const SocketAddress& listener, Fd fd,
                const CommOptions& options)
      : fabric_(fabric),
        device_(device),
        traffic_class_(options.chosen_class(fabric.settings())),
        listener_(listener),
        peer_(listener.to_string()),
        fd_(std::move(fd)),
        deadline_(fabric.clock(), seconds_to_ns(fabric.settings().connect_timeout)) {}

  void greet(const Nonce& nonce) {
    hello_.value.nonce = nonce;
    hello_.value.rails = describe_rails(device_.rails());
    hello_.value.eager_max = static_cast<uint32_t>(fabric_.settings().eager_max);
    hello_.value.name = own_name();
  }

  Result<std::unique_ptr<SendComm>> step() override {
    const Deadline::Look look(deadline_);
    Status status = Status::kOk;
    while (status == Status::kOk && state_ != State::kDone) status = advance();
    if (status == Status::kAgain && look.expired()) {
      error_ =
          make_error(Status::kTimeout, 0, "no answer in time while waiting for %s", waits_for());
      status = error_.status;
    }
    if (status == Status::kAgain) return nullptr;
    if (status != Status::kOk) return fail(explain());
    return std::make_unique<SendCommImpl>(
        fabric_, device_,
        channels_->take(welcome_.value.side, welcome_.value.eager_max, std::move(peer_)),
        std::move(*inbox_), std::move(*outbox_));
  }

 private:
  enum class State { kConnect, kHello, kWelcome, kConfirm, kChannels, kReady, kPeerReady, kDone };

  Status advance() {
    Status status = run();
    if (status == Status::kRemote && is_abort(error_) && may_dial_again()) status = dial_again();
    if (status == Status::kOk && state_ != State::kDone) {
      state_ = static_cast<State>(static_cast<int>(state_) + 1);
    }
    return status;
  }

  Status run() {
    switch (state_) {
      case State::kConnect:
        return connect();
      case State::kHello:
        return send_hello();
      case State::kWelcome:
        return receive_welcome();
      case State::kConfirm:
        return confirm_.send(fd_, &error_);
      case State::kChannels:
        return connect_channels();
      case State::kReady:
        return ready_.send(fd_, &error_);
      case State::kPeerReady:
        return receive_ready();
      case State::kDone:
        return Status::kOk;
    }
    return Status::kInternal;
  }

  bool may_dial_again() const {
    if (state_ > State::kWelcome || welcome_.begun()) return false;
    return !again_until_ || !again_until_->passed();
  }

  Status dial_again() {
    const Clock& clock = fabric_.clock();
    if (!again_until_)
      again_until_ = Deadline(clock, seconds_to_ns(fabric_.settings().connect_timeout));
    pause_ = Deadline(clock, times::kCommRedial);
    fd_.reset();
    hello_.restart();
    deadline_.restart(seconds_to_ns(fabric_.settings().connect_timeout));
    state_ = State::kConnect;
    return Status::kAgain;
  }

  Status connect() {
    if (!fd_) {
      if (!pause_->passed()) return Status::kAgain;
      auto dialing = start_connect(listener_);
      if (!dialing) return take(std::move(dialing.error()));
      fd_ = std::move(*dialing);
    }
    return finish_connect(fd_, listener_, &error_);
  }

  const char* waits_for() const {
    switch (state_) {
      case State::kConnect:
        return "the TCP connection";
      case State::kWelcome:
        return "the peer to accept";
      case State::kChannels:
        return "the rails to connect";
      default:
        return "the handshake";
    }
  }

  Status send_hello() {
    const Status status = hello_.send(fd_, &error_);
    // The peer may be far from its accept; it answers when it gets there.
    if (status == Status::kOk) deadline_.restart(seconds_to_ns(fabric_.settings().request_timeout));
    return status;
  }

  Status receive_welcome() {
    if (const Status status = welcome_.receive(fd_, &error_); status != Status::kOk) return status;
    const Welcome& welcome = welcome_.value;
    if (!valid(welcome.preamble, MessageType::kWelcome)) {
      return refuse(describe_mismatch(welcome.preamble, MessageType::kWelcome));
    }
    peer_ = peer_name(welcome.name, listener_);
    if (welcome.channels == 0) {
      return refuse("it refused: " + printable_field(welcome.reason));
    }
    const auto wanted = std::max<size_t>(welcome.rails.count, device_.rails().size());
    if (welcome.rails.count < 1 || welcome.rails.count > kMaxRails || welcome.channels != wanted ||
        welcome.eager_max > hello_.value.eager_max) {
      return refuse("its welcome does not fit what was offered");
    }
    deadline_.restart(seconds_to_ns(fabric_.settings().connect_timeout));
    return open_channels();
  }

  Status open_channels() {
    auto inbox = RegisteredBuffer::make(device_, cts_inbox_bytes(welcome_.value.channels));
    if (!inbox) return take(inbox.error());
    inbox_ = std::make_unique<RegisteredBuffer>(std::move(*inbox));
    auto outbox = RegisteredBuffer::make(
        device_, eager_inbox_bytes(welcome_.value.eager_max, welcome_.value.channels));
    if (!outbox) return take(outbox.error());
    outbox_ = std::make_unique<RegisteredBuffer>(std::move(*outbox));
    channels_ =
        std::make_unique<ChannelSet>(device_, welcome_.value.channels, true, traffic_class_);
    auto opened = channels_->pair_with(welcome_.value.rails, peer_);
    if (opened) opened = channels_->open(*inbox_, &confirm_.value.side);
    if (!opened) return take(opened.error());
    (void)channels_->connect(welcome_.value.side);  // first; connect_channels() looks how it went
    return Status::kOk;
  }

  Status connect_channels() {
    const Status status = channels_->connect(welcome_.value.side);
    if (status != Status::kOk && status != Status::kAgain) {
      error_ = make_error(status, 0, "%s", channels_->failure().c_str());
    }
    return status;
  }

  Status receive_ready() {
    const Status status = peer_ready_.receive(fd_, &error_);
    if (status != Status::kOk) return status;
    if (!valid(peer_ready_.value.preamble, MessageType::kReady)) {
      return refuse(describe_mismatch(peer_ready_.value.preamble, MessageType::kReady));
    }
    return Status::kOk;
  }

  Status refuse(const std::string& why) {
    return take(make_error(Status::kRemote, 0, "%s", why.c_str()));
  }
  Status take(Error error) {
    error_ = std::move(error);
    return error_.status;
  }
  Error explain() const {
    return make_error(error_.status, error_.code, "connect to peer %s on device %s: %s",
                      peer_.c_str(), device_.properties().name.c_str(), error_.what.c_str());
  }

  Fabric& fabric_;
  Device& device_;
  const int traffic_class_;
  const SocketAddress listener_;
  std::string peer_;
  Fd fd_;
  Deadline deadline_;
  std::optional<Deadline> again_until_, pause_;
  State state_ = State::kConnect;
  Error error_;
  HandshakeMessage<Hello> hello_;
  HandshakeMessage<Welcome> welcome_;
  HandshakeMessage<Confirm> confirm_;
  HandshakeMessage<Ready> ready_, peer_ready_;
  std::unique_ptr<RegisteredBuffer> inbox_, outbox_;
  std::unique_ptr<ChannelSet> channels_;  // last: channels go before the memory they write
};

}  // namespace

Result<std::unique_ptr<Connector>> Connector::open(Fabric& fabric, int device_index,
                                                   const Handle& handle,
                                                   const CommOptions& options) {
  Device* device = fabric.device(device_index);
  if (device == nullptr) {
    return fail(make_error(Status::kInvalid, 0, "connect: no device %d", device_index));
  }
  HandleFields fields;
  std::memcpy(&fields, handle.data(), sizeof fields);
  if (fields.preamble.magic != kMagic || fields.preamble.version != kProtocolVersion) {
    return fail(make_error(
        Status::kInvalid, 0,
        "connect on device %s: this is no handle of libnet-slime (%s); do all ranks load the same "
        "plugin?",
        device->properties().name.c_str(),
        describe_mismatch(fields.preamble, MessageType::kHello).c_str()));
  }
  auto listener = SocketAddress::unpack(fields.address);
  if (!listener) return fail(listener.error());
  auto fd = start_connect(*listener);
  if (!fd) return fail(fd.error());
  auto connector =
      std::make_unique<ConnectorImpl>(fabric, *device, *listener, std::move(*fd), options);
  connector->greet(fields.nonce);
  return connector;
}

}  // namespace slime
