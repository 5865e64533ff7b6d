// Set-up and end of a tcp channel.

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "settings/settings.h"
#include "settings/times.h"
#include "transports/channel_common.h"
#include "transports/tcp/channel.h"
#include "transports/tcp/rail.h"

namespace slime::tcp {

TcpChannel::TcpChannel(TcpRail& rail, const ChannelOptions& options, const Nonce& nonce)
    : rail_(rail),
      options_(options),
      own_{rail.local(), nonce},
      queue_(rail.caps().send_queue_depth, options.confirm_delivery),
      reader_(rail.regions(), rail.caps().max_message_bytes) {}

Result<std::unique_ptr<Channel>> TcpChannel::open(TcpRail& rail, const ChannelOptions& options) {
  auto nonce = random_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  std::unique_ptr<TcpChannel> channel(new TcpChannel(rail, options, *nonce));
  if (!options.active) {
    auto listening = rail.acceptor().expect(*nonce);
    if (!listening) return fail(prefixed(rail.caps(), std::move(listening.error())));
    channel->own_.address = *listening;
  }
  return channel;
}

TcpChannel::~TcpChannel() {
  if (!options_.active) rail_.acceptor().forget(own_.nonce);
  if (fd_ && state_ >= State::kReady) rail_.closing().add(ClosingSocket(std::move(fd_)));
  rail_.closing().poll();
}

ClosingSocket::ClosingSocket(Fd fd) : fd_(std::move(fd)) { ::shutdown(fd_.get(), SHUT_WR); }

// Closing loses nothing when no more input can come, as the kernel goes on sending by itself; or
// when the peer's kernel has acknowledged all output (SIOCOUTQ, tcp(7)), as a reset does not take
// from the peer what its kernel has.
bool ClosingSocket::is_done() {
  constexpr size_t kDiscardBytes = size_t{4} << 20;  // the rest waits for the next call
  // MSG_TRUNC: thrown away inside the kernel (tcp(7)).
  const ssize_t got = ::recv(fd_.get(), nullptr, kDiscardBytes, MSG_TRUNC | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
  int unacknowledged = 0;
  return ::ioctl(fd_.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
}

Status TcpChannel::connect(const ChannelAddress& peer) {
  if (state_ == State::kReady) return Status::kOk;
  if (state_ > State::kReady) return failure_.status;
  Error error;
  Status status = state_ == State::kNew ? begin(peer, &error) : Status::kOk;
  const Deadline::Look look(deadline_);
  while (status == Status::kOk && state_ != State::kReady) status = step(&error);
  if (status == Status::kAgain && look.expired()) {
    error = timeout_error();
    status = error.status;
  } else if (status != Status::kOk && status != Status::kAgain) {
    error.status = status;
    error = prefixed(where(), std::move(error));
  }
  if (status != Status::kOk && status != Status::kAgain)
    fail_with(std::move(error), State::kFailed);
  return status;
}

Status TcpChannel::step(Error* error) {
  switch (state_) {
    case State::kDialing:
      return dial(error);
    case State::kGreeting:
    case State::kAnswering:
      return greet(error);
    case State::kListening:
      return options_.active ? await_answer(error) : await_hello(error);
    default:
      return Status::kOk;
  }
}

Status TcpChannel::begin(const ChannelAddress& peer, Error* error) {
  auto endpoint = unpack_endpoint(peer);
  if (!endpoint) return *error = std::move(endpoint.error()), error->status;
  peer_ = *endpoint;
  // A scope means an interface of the host that wrote it; ours is that of this rail.
  if (peer_.address.is_link_local()) peer_.address.set_scope(rail_.local().scope());
  if (peer_.address.family() != rail_.local().family()) {
    *error = make_error(Status::kConfig, 0,
                        "the peer's rail has the address %s, of another family than ours (%s); "
                        "choose interfaces of one kind on all hosts with NCCL_SLIME_IFNAME",
                        peer_.address.host().c_str(), rail_.local().host().c_str());
    return error->status;
  }
  deadline_.restart(seconds_to_ns(rail_.settings().connect_timeout));
  if (options_.active) {
    dialer_.emplace(peer_.address, Dialer::Options{.retry = Dialer::Retry::kUnreachable,
                                                   .pause_ns = times::kRailRedial,
                                                   .source = &rail_.local(),
                                                   .buffer_bytes = rail_.settings().socket_buffer});
  }
  state_ = options_.active ? State::kDialing : State::kListening;
  return Status::kOk;
}

Status TcpChannel::dial(Error* error) {
  const Status status = dialer_->progress(steady_now_ns(), error);
  if (status != Status::kOk) return status;
  fd_ = std::move(dialer_->fd());
  prepare_greeting();
  state_ = State::kGreeting;
  return tune(error);
}

// The exchange of hellos on this connection has failed; another connection may do better.
Status TcpChannel::redial(Error* error) {
  const Status status = dialer_->again(steady_now_ns(), error);
  if (status != Status::kAgain) return status;
  fd_.reset();
  greeting_.done = answer_.done = 0;
  state_ = State::kDialing;
  return Status::kAgain;
}

Status TcpChannel::greet(Error* error) {
  const Status status = greeting_.send(fd_, error);
  if (status == Status::kAgain) return status;
  if (status != Status::kOk) return options_.active ? redial(error) : status;
  if (state_ == State::kGreeting)
    state_ = State::kListening;
  else
    become_ready();
  return Status::kOk;
}

Status TcpChannel::await_answer(Error* error) {
  const Status status = answer_.receive(fd_, error);
  if (status == Status::kRemote && is_abort(*error)) return redial(error);
  if (status == Status::kRemote) {
    error->what += "; the peer did not take our hello: its log says why";
  }
  if (status != Status::kOk) return status;
  std::memcpy(&peer_hello_, answer_.bytes.data(), kHelloBytes);
  const Status checked = check_answer(peer_hello_, error);
  if (checked == Status::kOk) become_ready();
  return checked;
}

Status TcpChannel::check_answer(const Hello& answer, Error* error) const {
  if (answer.magic == kHelloMagic && answer.version == kVersion && !(answer.flags & ~kWantsAcks) &&
      same_nonce(answer.nonce, own_.nonce)) {
    return Status::kOk;
  }
  *error = make_error(Status::kRemote, 0,
                      "the answer to our hello is not of the channel that we look for (magic 0x%x, "
                      "version %u, ours is %u); use the same libnet-slime on all hosts, and check "
                      "that no proxy answers in the peer's place",
                      answer.magic, answer.version, kVersion);
  return error->status;
}

Status TcpChannel::await_hello(Error* error) {
  Arrival arrival;
  const Status status = rail_.acceptor().take(own_.nonce, &arrival, error);
  if (status != Status::kOk) return status;
  fd_ = std::move(arrival.fd);
  peer_.address = arrival.peer;
  peer_hello_ = arrival.hello;
  prepare_greeting();
  state_ = State::kAnswering;
  return tune(error);
}

Status TcpChannel::tune(Error* error) {
  auto tuned = set_nodelay(fd_);
  if (tuned) tuned = set_keepalive(fd_, rail_.settings().peer_timeout);
  if (tuned) tuned = set_longest_resend_pause(fd_, rail_.settings().peer_timeout);
  if (tuned) tuned = choose_congestion_control();
  if (tuned) mark();
  if (tuned) return Status::kOk;
  *error = std::move(tuned.error());
  return error->status;
}

// Some algorithms (bbr) pace what they send by timers. Within a host there is nothing to protect,
// and that costs a third of the throughput. Every kernel has reno, and lets everybody use it.
Result<void> TcpChannel::choose_congestion_control() {
  const std::string& name = rail_.settings().tcp_congestion;
  if (name.empty()) {
    if (is_within_host(fd_)) (void)set_congestion_control(fd_, "reno");
    return {};
  }
  auto set = set_congestion_control(fd_, name);
  if (set) return {};
  return fail(make_error(Status::kConfig, set.error().code,
                         "NCCL_SLIME_TCP_CONGESTION=%s cannot be used here (%s); see "
                         "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
                         name.c_str(), set.error().what.c_str()));
}

void TcpChannel::mark() {
  if (options_.traffic_class == kNoTrafficClass) return;
  auto marked = set_traffic_class(fd_, options_.traffic_class);
  if (!marked) rail_.warn_unmarked(marked.error());
}

void TcpChannel::prepare_greeting() {
  Hello hello;
  hello.flags = options_.confirm_delivery ? kWantsAcks : 0;
  hello.nonce = peer_.nonce;
  std::memcpy(greeting_.bytes.data(), &hello, kHelloBytes);
}

void TcpChannel::become_ready() {
  if (peer_hello_.flags & kWantsAcks) queue_.answer_with_acks();
  state_ = State::kReady;
}

}  // namespace slime::tcp
