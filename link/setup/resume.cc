#include "link/setup/resume.h"

#include <cerrno>
#include <optional>
#include <utility>

#include "base/deadline.h"
#include "base/net/dialer.h"
#include "settings/times.h"

namespace slime {

void TcpLifelineStream::send(const LifelineHeader& header, std::span<const std::byte> payload) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  waiting_.insert(waiting_.end(), payload.begin(), payload.end());
  Error later;  // receive() reports it
  (void)flush(&later);
}

Status TcpLifelineStream::flush(Error* error) {
  if (waiting_.empty()) return Status::kOk;
  size_t sent = 0;
  const Status status = send_message(fd_, waiting_, &sent, error);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(sent));
  if (status == Status::kAgain && waiting_.size() > kMostWaiting) {
    *error = make_error(Status::kRemote, 0, "the peer does not read what it is sent");
    return error->status;
  }
  return status == Status::kAgain ? Status::kOk : status;
}

// The header is checked before its payload is waited for.
Status TcpLifelineStream::receive(LifelineHeader* header, std::span<const std::byte>* payload,
                                  Error* error) {
  if (const Status status = flush(error); status != Status::kOk) return status;
  const auto bytes = std::as_writable_bytes(std::span(&header_, 1));
  if (header_done_ < bytes.size()) {
    const Status status = receive_message(fd_, bytes, &header_done_, error);
    if (status != Status::kOk) return status;
    if (header_.bytes > LifelineHeader::kMostBytes) {
      *error = make_error(Status::kRemote, 0, "a frame of %u bytes", header_.bytes);
      return error->status;
    }
    payload_.resize(header_.bytes);
    payload_done_ = 0;
  }
  if (payload_done_ < payload_.size()) {
    const Status status = receive_message(fd_, payload_, &payload_done_, error);
    if (status != Status::kOk) return status;
  }
  header_done_ = 0;
  *header = header_;
  *payload = payload_;
  return Status::kOk;
}

namespace {

// States: pausing until not_before_ns_, dialing, saying hello, waiting for the answer; dial() goes
// on from there. What else ends an exchange than is_final() may pass, so another begins after a
// pause: a listener resets callers when it has too many, a network cuts connections, a process is
// out of descriptors. Thread: that of the link.
class TcpLifelineDialer final : public LifelineDialer {
 public:
  TcpLifelineDialer(const Clock& clock, const SocketAddress& listener, const Nonce& nonce,
                    const LinkId& link)
      : clock_(clock), listener_(listener), deadline_(clock, times::kLifelineSilence) {
    hello_.value.preamble.type = static_cast<uint16_t>(MessageType::kResume);
    hello_.value.nonce = nonce;
    hello_.value.link = link;
    hello_.value.name = own_name();
    begin();
  }

  Status dial(std::unique_ptr<LifelineStream>* stream, Error* error) override {
    if (clock_.now_ns() < not_before_ns_) return Status::kAgain;
    const Status status = step(error);
    if (status == Status::kAgain || (status != Status::kOk && is_final(*error))) return status;
    if (status == Status::kOk) {
      *stream = std::make_unique<TcpLifelineStream>(std::move(dialer_->fd()));
      last_failure_.clear();
    } else {
      last_failure_ = error->what;
    }
    begin();
    not_before_ns_ = clock_.now_ns() + times::kRailRedial;
    return status == Status::kOk ? status : Status::kAgain;
  }
  void stop() override {
    last_failure_.clear();
    begin();
  }
  std::string last_failure() const override {
    return dialer_->last_failure().empty() ? last_failure_ : dialer_->last_failure();
  }

 private:
  void begin() {
    dialer_.emplace(listener_, Dialer::Options{.pause_ns = times::kRailRedial});
    connected_ = false;
    hello_.restart();
    answer_.restart();
  }

  // Nobody listens there any more, or the listener does not have the link.
  bool is_final(const Error& error) const {
    return refused_ || (!connected_ && error.code == ECONNREFUSED);
  }

  Status step(Error* error) {
    if (!connected_) {
      const Status status = dialer_->progress(clock_.now_ns(), error);
      if (status != Status::kOk) return status;
      connected_ = true;
      deadline_.restart(times::kLifelineSilence);
    }
    const Deadline::Look look(deadline_);
    Status status = hello_.send(dialer_->fd(), error);
    if (status == Status::kOk) status = answer_.receive(dialer_->fd(), error);
    if (status == Status::kAgain && look.expired()) {
      *error = make_error(Status::kTimeout, 0, "its listener does not answer");
      return error->status;
    }
    if (status != Status::kOk) return status;
    refused_ = !valid(answer_.value.preamble, MessageType::kResumed) || answer_.value.known != 1;
    if (!refused_) return Status::kOk;
    *error = make_error(Status::kRemote, 0, "its listener does not have this link any more");
    return error->status;
  }

  const Clock& clock_;
  const SocketAddress listener_;
  Deadline deadline_;  // for the answer
  std::optional<Dialer> dialer_;
  uint64_t not_before_ns_ = 0;
  bool connected_ = false, refused_ = false;
  HandshakeMessage<Hello> hello_;
  HandshakeMessage<Resumed> answer_;
  std::string last_failure_;
};

}  // namespace

std::unique_ptr<LifelineDialer> make_lifeline_dialer(const Clock& clock,
                                                     const SocketAddress& listener,
                                                     const Nonce& nonce, const LinkId& link) {
  return std::make_unique<TcpLifelineDialer>(clock, listener, nonce, link);
}

}  // namespace slime
