#include "transports/tcp/handshake.h"

#include <cerrno>
#include <utility>

#include "settings/settings.h"
#include "settings/times.h"
#include "transports/channel_common.h"
#include "transports/tcp/rail.h"
#include "transports/tcp/small_paths.h"

namespace slime::tcp {
namespace {

constexpr uint64_t kLookNs = 100'000'000;  // a system call each time

}  // namespace

Handshake::Handshake(TcpRail& rail, const ChannelOptions& options)
    : rail_(rail), options_(options), own_{rail.local(), {}} {}

Handshake::~Handshake() {
  if (!options_.active) rail_.acceptor().forget(own_.nonce);
}

Result<void> Handshake::open() {
  auto nonce = random_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  own_.nonce = *nonce;
  if (options_.active) return {};
  auto listening = rail_.acceptor().expect(*nonce);
  if (!listening) return fail(prefixed(rail_.caps(), std::move(listening.error())));
  own_.address = *listening;
  return {};
}

Fd Handshake::take_socket() {
  if (!options_.active) rail_.acceptor().forget(own_.nonce);
  if (dialer_) dialer_->fd().reset();  // a connection that does not stand yet has nothing to lose
  if (first_) abort_connection(std::move(first_));
  return std::move(fd_);
}

Status Handshake::progress(const ChannelAddress& peer, Error* error) {
  Status status = state_ == State::kNew ? begin(peer, error) : Status::kOk;
  const Deadline::Look look(deadline_);
  while (status == Status::kOk && state_ != State::kDone) status = step(error);
  if (state_ == State::kDone) hello_.reset();
  if (status != Status::kAgain || !look.expired()) return status;
  *error = timeout_error();
  return error->status;
}

Status Handshake::step(Error* error) {
  if (first_ && first_is_answered()) return return_to_first();
  if (state_ == State::kDialing) return dial(error);
  if (!options_.active) return state_ == State::kListening ? await_hello(error) : greet(error);
  const Status status = state_ == State::kListening ? await_answer(error) : greet(error);
  if (status != Status::kAgain || !finds_small_path()) return status;
  *error = make_error(Status::kTimeout, ETIMEDOUT,
                      "our hello of %zu bytes in segments of %d does not come through", kHelloBytes,
                      lost_bytes_);
  if (state_ == State::kListening) {
    first_ = std::move(fd_);
    first_answer_ = answer_;
  }
  return redial(error);
}

Status Handshake::begin(const ChannelAddress& peer, Error* error) {
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
    hello_ = std::make_unique<ControlMessage<Hello>>();
    const std::string interface = rail_.interface_to_bind(peer_.address);
    bound_ = !interface.empty();
    const bool small = SmallPaths::of_process().has(peer_.address);
    dialer_.emplace(peer_.address, Dialer::Options{.pause_ns = times::kRailRedial,
                                                   .source = &rail_.local(),
                                                   .interface = interface,
                                                   .bound_try_ns = times::kBoundTry,
                                                   .buffer_bytes = rail_.settings().socket_buffer,
                                                   .max_segment = small ? kSmallSegment : 0});
  }
  state_ = options_.active ? State::kDialing : State::kListening;
  return Status::kOk;
}

Status Handshake::dial(Error* error) {
  const Status status = dialer_->progress(steady_now_ns(), error);
  if (status == Status::kAgain) return status;
  if (status != Status::kOk) return first_ ? return_to_first() : status;
  if (bound_ && !dialer_->is_bound()) rail_.go_unbound(peer_.address);
  return start_greeting(std::move(dialer_->fd()), State::kGreeting, error);
}

// The exchange of hellos on this connection has failed; another connection may do better.
Status Handshake::redial(Error* error) {
  const Status status = dialer_->again(steady_now_ns(), error);
  if (status != Status::kAgain) return first_ ? return_to_first() : status;
  abort_connection(std::move(fd_));  // the peer need not wait for the rest of our hello
  hello_->restart();
  answer_.restart();
  state_ = State::kDialing;
  return Status::kAgain;
}

bool Handshake::first_is_answered() {
  Error error;
  const Status status = first_answer_.receive(first_, &error);
  if (status != Status::kOk && status != Status::kAgain) first_.reset();
  return status == Status::kOk;
}

// The first connection is answered, or the other one has failed for good: most likely the peer
// refuses it because it has the hello of the first. If not, the peer resets the first one in the
// end, and further tries are as usual.
Status Handshake::return_to_first() {
  dialer_->fd().reset();
  abort_connection(std::exchange(fd_, std::move(first_)));
  answer_ = first_answer_;
  lost_bytes_ = 0;
  look_at_ns_ = UINT64_MAX;
  state_ = State::kListening;
  return Status::kOk;
}

bool Handshake::finds_small_path() {
  const uint64_t now_ns = steady_now_ns();
  if (!fd_ || now_ns < look_at_ns_) return false;
  look_at_ns_ = now_ns + kLookNs;
  const int lost = lost_segments(fd_);
  if (lost == 0) return false;
  lost_bytes_ = lost;
  dialer_->use_small_segments();
  return true;
}

Status Handshake::greet(Error* error) {
  const Status status = options_.active ? hello_->send(fd_, error) : answer_.send(fd_, error);
  if (status == Status::kAgain) return status;
  if (status != Status::kOk) return options_.active ? redial(error) : status;
  state_ = state_ == State::kGreeting ? State::kListening : State::kDone;
  return Status::kOk;
}

Status Handshake::await_answer(Error* error) {
  Status status = answer_.receive(fd_, error);
  if (status == Status::kAgain) return status;
  if (status != Status::kOk) {
    status = redial(error);
    if (status == Status::kRemote) {
      error->what += "; the peer did not take our hello: its log says why";
    }
    return status;
  }
  const Greeting& answer = answer_.value;
  if (answer.magic == kHelloMagic && answer.version == kVersion && answer.flags == 0 &&
      same_nonce(answer.nonce, own_.nonce)) {
    if (lost_bytes_ > 0)
      SmallPaths::of_process().note(rail_.caps().name, peer_.address, lost_bytes_);
    state_ = State::kDone;
    return Status::kOk;
  }
  *error = make_error(Status::kRemote, 0,
                      "the answer to our hello is not of the channel that we look for (magic 0x%x, "
                      "version %u, ours is %u); use the same libnet-slime on all hosts, and check "
                      "that no proxy answers in the peer's place",
                      answer.magic, answer.version, kVersion);
  return error->status;
}

Status Handshake::await_hello(Error* error) {
  Arrival arrival;
  const Status status = rail_.acceptor().take(own_.nonce, &arrival, error);
  if (status != Status::kOk) return status;
  peer_.address = arrival.peer;
  rail_.outlet().keep(arrival.fd, arrival.peer);
  return start_greeting(std::move(arrival.fd), State::kAnswering, error);
}

Status Handshake::start_greeting(Fd fd, State state, Error* error) {
  fd_ = std::move(fd);
  state_ = state;
  Greeting& ours = options_.active ? hello_->value : answer_.value;
  ours.nonce = peer_.nonce;
  auto tuned = tune();
  if (tuned) return Status::kOk;
  *error = std::move(tuned.error());
  return error->status;
}

Result<void> Handshake::tune() {
  auto tuned = set_nodelay(fd_);
  if (tuned) tuned = set_keepalive(fd_, rail_.settings().peer_timeout);
  if (tuned) tuned = set_longest_resend_pause(fd_, rail_.settings().peer_timeout);
  if (tuned) tuned = choose_congestion_control();
  if (!tuned || options_.traffic_class == kNoTrafficClass) return tuned;
  if (auto marked = set_traffic_class(fd_, options_.traffic_class); !marked) {
    rail_.warn_unmarked(marked.error());
  }
  return {};
}

// Some algorithms (bbr) pace what they send by timers. Within a host there is nothing to protect,
// and that costs a third of the throughput. Every kernel has reno, and lets everybody use it.
Result<void> Handshake::choose_congestion_control() {
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

Error Handshake::timeout_error() const {
  const char* doing = options_.active ? "no answer" : "the peer has not connected";
  const std::string last = !options_.active ? rail_.acceptor().summary_of_strangers()
                           : dialer_->last_failure().empty() ? ""
                                                             : "; last: " + dialer_->last_failure();
  return make_error(Status::kTimeout, ETIMEDOUT,
                    "%s within %g s (NCCL_SLIME_CONNECT_TIMEOUT) at address %s%s; check that "
                    "the peer process lives and that no firewall stops TCP between the hosts",
                    doing, rail_.settings().connect_timeout,
                    (options_.active ? peer_ : own_).address.to_string().c_str(), last.c_str());
}

}  // namespace slime::tcp
