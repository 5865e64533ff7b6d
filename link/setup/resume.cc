#include "link/setup/resume.h"

#include <optional>
#include <utility>

#include "base/deadline.h"
#include "base/net/dialer.h"
#include "settings/times.h"

namespace slime {

void TcpLifelineStream::send_bytes(std::span<const std::byte> bytes) {
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
}

void TcpLifelineStream::send(const LifelineHeader& header, std::span<const std::byte> payload) {
  send_bytes(std::as_bytes(std::span(&header, 1)));
  send_bytes(payload);
}

Status TcpLifelineStream::flush(Error* error) {
  if (waiting_.empty()) return Status::kOk;
  const Status status = send_message(fd_, waiting_, &sent_, error);
  if (status == Status::kOk) {
    waiting_.clear();
    sent_ = 0;
  } else if (status == Status::kAgain && waiting_.size() - sent_ > kMostWaiting) {
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

// States: dialing, saying hello, waiting for the answer; dial() goes on from there. A connection
// that breaks, or is not answered in time, begins again. Thread: that of the link.
class TcpLifelineDialer final : public LifelineDialer {
 public:
  TcpLifelineDialer(const Clock& clock, double answer_seconds, const SocketAddress& listener,
                    const Nonce& nonce, const LinkId& link)
      : clock_(clock),
        listener_(listener),
        answer_ns_(seconds_to_ns(answer_seconds)),
        deadline_(clock, answer_ns_) {
    hello_.value.preamble.type = static_cast<uint16_t>(MessageType::kResume);
    hello_.value.nonce = nonce;
    hello_.value.link = link;
    hello_.value.name = own_name();
    begin();
  }

  Status dial(std::unique_ptr<LifelineStream>* stream, Error* error) override {
    const Status status = step(error);
    if (status == Status::kAgain) return status;
    if (status == Status::kOk) {
      *stream = std::make_unique<TcpLifelineStream>(std::move(dialer_->fd()));
      begin();
      return status;
    }
    if (refused_) return status;
    if (!connected_) return status;
    // Whatever ended an exchange may pass: a listener resets callers when it has too many.
    last_failure_ = error->what;
    begin();
    return Status::kAgain;
  }
  std::string last_failure() const override {
    return last_failure_.empty() ? dialer_->last_failure() : last_failure_;
  }

 private:
  void begin() {
    dialer_.emplace(listener_, Dialer::Options{.pause_ns = times::kRailRedial});
    connected_ = false;
    hello_.restart();
    answer_.restart();
  }

  Status step(Error* error) {
    if (!connected_) {
      const Status status = dialer_->progress(clock_.now_ns(), error);
      if (status != Status::kOk) return status;
      connected_ = true;
      deadline_.restart(answer_ns_);
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
  const uint64_t answer_ns_;
  Deadline deadline_;  // for the answer
  std::optional<Dialer> dialer_;
  bool connected_ = false, refused_ = false;
  HandshakeMessage<Hello> hello_;
  HandshakeMessage<Resumed> answer_;
  std::string last_failure_;
};

}  // namespace

std::unique_ptr<LifelineDialer> make_lifeline_dialer(const Clock& clock, double answer_seconds,
                                                     const SocketAddress& listener,
                                                     const Nonce& nonce, const LinkId& link) {
  return std::make_unique<TcpLifelineDialer>(clock, answer_seconds, listener, nonce, link);
}

}  // namespace slime
