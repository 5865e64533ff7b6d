#include "transports/tcp/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "transports/tcp/rail.h"

namespace slime::tcp {

namespace {

constexpr uint32_t kPollsPerWatch = 32;
constexpr uint32_t kMostUnreadPolls = 8;

}  // namespace

TcpChannel::TcpChannel(TcpRail& rail, const ChannelOptions& options)
    : rail_(rail),
      poller_(static_cast<const TcpPoller*>(options.poller)),
      tag_(options.tag),
      handshake_(rail, options),
      depth_(rail.caps(), options.depth),
      queue_(depth_.writes, options.confirm_delivery, depth_.reads),
      reads_(depth_.reads),
      answers_(rail.regions(), depth_.reads),
      reader_(rail.regions(), rail.caps().max_message_bytes, queue_, reads_, answers_) {}

Result<std::unique_ptr<Channel>> TcpChannel::open(TcpRail& rail, const ChannelOptions& options) {
  std::unique_ptr<TcpChannel> channel(new TcpChannel(rail, options));
  auto opened = channel->handshake_.open();
  if (!opened) return fail(std::move(opened.error()));
  return channel;
}

TcpChannel::~TcpChannel() {
  if (ack_left_ && state_ == State::kReady) flush();
  stop_watching();
  if (fd_) rail_.closing().add(ClosingSocket(std::move(fd_)));
  rail_.closing().poll();
}

Status TcpChannel::connect(const ChannelAddress& peer) {
  if (state_ == State::kReady) return Status::kOk;
  if (state_ > State::kReady) return failure_.status;
  Error error;
  const Status status = handshake_.progress(peer, &error);
  if (status == Status::kAgain) return status;
  if (status != Status::kOk) {
    fail_with(prefixed(where(), std::move(error)), State::kFailed);
    return status;
  }
  return become_ready();
}

Status TcpChannel::become_ready() {
  fd_ = handshake_.take_socket();
  if (poller_ != nullptr) {
    if (auto added = poller_->add(fd_, tag_); !added) {
      fail_with(prefixed(where(), std::move(added.error())), State::kFailed);
      return failure_.status;
    }
    watched_ = true;
  }
  state_ = State::kReady;
  return Status::kOk;
}

Status TcpChannel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  if (state_ != State::kReady) {
    if (state_ < State::kReady) fail_with(posted_early(rail_.caps()), State::kFailed);
    return failure_.status;
  }
  works = works.first(count_that_fit(works, queue_.room(), reads_.room()));
  for (const Work& work : works) {
    if (valid(work)) continue;
    fail_with(work_error(work), State::kBroken);
    return failure_.status;
  }
  if (works.empty()) return Status::kOk;
  append(works);
  if (!blocked() || pacer_.due(steady_now_ns())) flush();
  *taken = works.size();
  return Status::kOk;
}

void TcpChannel::append(std::span<const Work> works) {
  uint64_t bytes = 0;
  for (const Work& work : works) {
    if (work.opcode == Opcode::kRead) {
      queue_.control().push(reads_.begin(work));
    } else {
      queue_.append({&work, 1});
      bytes += work.length;
    }
  }
  counters.works.add(works.size());
  counters.bytes_sent.add(bytes);
}

// The kernel would take any memory; other rails need the key, so a wrong one is found here.
bool TcpChannel::valid(const Work& work) {
  if (work.length == 0) return true;
  if (work.length > rail_.caps().max_message_bytes) return false;
  const RegionTable::Pin pin(rail_.regions(), work.local_key,
                             reinterpret_cast<uint64_t>(work.local), work.length);
  return pin.access() == RegionTable::Access::kGranted;
}

Status TcpChannel::poll(std::span<Done> done, size_t* count) {
  *count = 0;
  counters.polls.add();
  if (state_ == State::kFenced || state_ < State::kReady) return Status::kOk;
  const bool was_broken = state_ == State::kBroken;  // before the look at the socket
  // Works that are done are reported without a look at the socket: after a small send nothing has
  // come yet, mostly. Completions and arrivals must not starve each other. So such polls are few in
  // a row, only one while there are arrivals; and in a poll with a look completions get half of the
  // room at most.
  size_t reported = 0;
  if (queue_.sent() > 0 && unread_polls_left_ > 0) {
    --unread_polls_left_;
  } else if (state_ != State::kFailed) {
    reported = receive(done.first(done.size() - std::min(queue_.sent(), done.size() / 2)));
    unread_polls_left_ = reported > 0 ? 1 : kMostUnreadPolls;
  }
  if (state_ == State::kReady && has_output() && !leaves_ack(reported) &&
      (!blocked() || pacer_.due(steady_now_ns()))) {
    flush();
  }
  reported += queue_.take_sent(done.subspan(reported));
  *count = reported;
  if (reported > 0) return Status::kOk;
  counters.empty_polls.add();
  if (was_broken && reader_.drained() && !done.empty()) fail_with({}, State::kFailed);
  // Only now: whatever happens shows that the peer lives. Reading the time is a sixth of the cost
  // of an empty poll, so most do not.
  if (state_ == State::kReady && idle_polls_++ % kPollsPerWatch == 0) watch(steady_now_ns());
  return state_ == State::kFailed ? failure_.status : Status::kOk;
}

size_t TcpChannel::receive(std::span<Done> done) {
  if (done.empty()) return 0;
  size_t reported = 0;
  const uint64_t bytes_before = reader_.placed_bytes();
  const uint32_t writes_before = reader_.placed_writes();
  if (!reader_.read(fd_.get(), done, &reported)) fail_with(read_error(), State::kFailed);
  if (!queue_.acknowledge(reader_.peer_ack())) fail_with(ack_error(), State::kFailed);
  if (const uint64_t bytes = reader_.placed_bytes() - bytes_before; bytes > 0) {
    counters.bytes_received.add(bytes);
  }
  if (const uint32_t writes = reader_.placed_writes() - writes_before; writes > 0) {
    counters.arrivals.add(writes);
  }
  if (queue_.control().refused() != counters.refused.get()) note_refusals();
  return reported;
}

// Logged at this end, whose process may have deregistered the memory too early.
void TcpChannel::note_refusals() {
  const uint64_t before = counters.refused.get();
  if (before == 0) SLIME_INFO("%s", refusal_note().c_str());
  counters.refused.add(queue_.control().refused() - before);
}

void TcpChannel::watch(uint64_t now_ns) {
  if (now_ns < watch_at_ns_) return;
  const uint64_t limit_ns = seconds_to_ns(rail_.settings().peer_timeout);
  watch_at_ns_ = now_ns + limit_ns / 4;
  Error error;
  if (silence_.check(fd_, now_ns, limit_ns, &error) == Status::kOk) return;
  // Not kFailed: what has come since the look at the socket is still to be read.
  fail_with(prefixed(where(), std::move(error)), State::kBroken);
}

// An acknowledgement of what has just come costs no call of its own if the answer of this end goes
// next. A user of a poller arms the channel before leaving it, and arm() says kAgain until the
// acknowledgement has gone.
bool TcpChannel::leaves_ack(size_t reported) {
  const bool leaves = poller_ != nullptr && reported > 0 && !ack_left_ && queue_.has_no_frames() &&
                      answers_.empty();
  ack_left_ = leaves;
  return leaves;
}

// Writes and answers take turns, so that neither waits for the other for long.
void TcpChannel::flush() {
  ack_left_ = false;
  if (!answers_.mid_frame()) {
    send_works();
    answers_due_ = !answers_.empty();
    if (queue_.blocked() || state_ != State::kReady) return;
  }
  if (!answers_.empty()) send_answer();
}

void TcpChannel::send_works() {
  const std::span<iovec> vectors =
      queue_.gather(reader_.arrived(), reader_.awaited(), !answers_due_);
  const size_t asked = queue_.gathered();
  const ssize_t result = asked > 0 ? send_vectors(vectors) : 0;
  queue_.moved(result > 0 ? static_cast<size_t>(result) : 0);
  if (asked > 0) after_send(result, asked);
}

void TcpChannel::send_answer() {
  size_t asked = 0;
  const ssize_t result =
      answers_.send([this](std::span<iovec> vectors) { return send_vectors(vectors); },
                    reader_.arrived(), queue_.control(), &asked);
  answer_blocked_ = asked > 0 && result < static_cast<ssize_t>(asked);
  answers_due_ = answers_.mid_frame();
  if (asked > 0) after_send(result, asked);
  if (result > 0) queue_.note_ack(answers_.sent_ack());
  if (queue_.control().refused() != counters.refused.get()) note_refusals();
  if (answers_.refused_too_many()) fail_with(too_many_refusals(), State::kFailed);
}

ssize_t TcpChannel::send_vectors(std::span<iovec> vectors) {
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Counts the call, sets the pacer, and breaks the channel on an error.
void TcpChannel::after_send(ssize_t result, size_t asked) {
  const int code = result < 0 ? errno : 0;
  const size_t bytes = result > 0 ? static_cast<size_t>(result) : 0;
  counters.doorbells.add();
  if (bytes == 0) counters.futile_posts.add();
  const bool stuck = bytes < asked;
  pacer_.flushed(stuck ? steady_now_ns() : 0, bytes, stuck);
  // Not kFailed: what the peer sent before may still be read.
  if (code != 0 && code != EAGAIN && code != EINTR)
    fail_with(socket_error("sending", code), State::kBroken);
}

// What there is for poll() is either in this channel, or the kernel tells the poller of it.
Status TcpChannel::arm() {
  if (poller_ == nullptr) return Status::kUnsupported;
  if (state_ < State::kReady) return Status::kInvalid;
  if (state_ == State::kReady) watch(steady_now_ns());
  if (state_ >= State::kFailed) return failure_.status;
  const bool may_send = has_output() && !blocked();
  if (state_ != State::kReady || may_send || queue_.sent() > 0 || reader_.holds_more()) {
    return Status::kAgain;
  }
  if (has_output()) pacer_.expire();  // the kernel says when there is room
  poller_->arm(fd_, tag_, EPOLLIN | (has_output() ? EPOLLOUT : 0U));
  return Status::kOk;
}

void TcpChannel::disarm() {
  if (watched_) poller_->arm(fd_, tag_, 0);
}

void TcpChannel::stop_watching() {
  if (std::exchange(watched_, false)) poller_->remove(fd_);
}

void TcpChannel::fence() {
  if (state_ == State::kFenced) return;
  fail_with(fenced_off(where()), State::kFenced);
}

void TcpChannel::fail_with(Error error, State state) {
  if (state_ < State::kBroken) failure_ = std::move(error);
  if (state_ < State::kReady && !fd_) fd_ = handshake_.take_socket();
  state_ = state;
  // The peer shall notice that nothing more is read or written here. Only our output ends: with the
  // input ended too, what the peer still sends would make the kernel reset the connection and throw
  // away what the peer has not got yet (linux/net/ipv4/tcp_input.c, tcp_rcv_state_process).
  if (fd_ && state >= State::kFailed) ::shutdown(fd_.get(), SHUT_WR);
  if (state >= State::kFailed) stop_watching();
}

}  // namespace slime::tcp
