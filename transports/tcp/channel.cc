// The data path of a tcp channel.
#include "transports/tcp/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "transports/tcp/rail.h"

namespace slime::tcp {

namespace {

// How long a full socket is left alone.
constexpr uint64_t kBlockedPauseNs = 20'000;

uint64_t now() { return SteadyClock::instance().now_ns(); }

}  // namespace

Status TcpChannel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  if (state_ != State::kReady) {
    if (state_ == State::kFenced) return Status::kOk;
    if (state_ < State::kReady) fail_with(early_error(), State::kFailed);
    return failure_.status;
  }
  works = works.first(std::min(works.size(), queue_.room()));
  uint64_t bytes = 0;
  for (const Work& work : works) {
    if (!valid(work)) {
      fail_with(work_error(work), State::kBroken);
      return failure_.status;
    }
    bytes += work.length;
  }
  if (works.empty()) return Status::kOk;
  queue_.append(works);
  counters.works.add(works.size());
  counters.bytes_sent.add(bytes);
  if (flush_is_due()) flush();
  *taken = works.size();
  return Status::kOk;
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
  // Arrivals and completions each get half of the room, so that neither can starve the other; of
  // an odd room (it may be one) they get the middle by turns.
  odd_poll_ = !odd_poll_;
  const size_t reserved = std::min(queue_.sent(), (done.size() + odd_poll_) / 2);
  size_t reported = state_ == State::kFailed ? 0 : receive(done.first(done.size() - reserved));
  if (state_ == State::kReady && queue_.wants_to_send(reader_.arrived()) && flush_is_due()) flush();
  reported += queue_.take_sent(done.subspan(reported));
  *count = reported;
  return outcome(reported);
}

size_t TcpChannel::receive(std::span<Done> done) {
  if (done.empty()) return 0;
  size_t arrivals = 0;
  const uint64_t bytes_before = reader_.bytes();
  if (!reader_.read(fd_.get(), done, &arrivals)) fail_with(read_error(), State::kFailed);
  if (options_.confirm_delivery && !queue_.acknowledge(reader_.peer_ack())) {
    fail_with(ack_error(), State::kFailed);
  }
  if (arrivals > 0) {
    counters.arrivals.add(arrivals);
    counters.bytes_received.add(reader_.bytes() - bytes_before);
  }
  return arrivals;
}

Status TcpChannel::outcome(size_t reported) {
  if (reported > 0) return Status::kOk;
  counters.empty_polls.add();
  if (state_ == State::kReady) watch();
  if (state_ == State::kBroken && reader_.drained()) state_ = State::kFailed;
  return state_ == State::kFailed ? failure_.status : Status::kOk;
}

// Only while nothing happens: whatever happens shows that the peer lives.
void TcpChannel::watch() {
  const uint64_t now_ns = now();
  if (now_ns < watch_at_ns_) return;
  const uint64_t limit_ns = seconds_to_ns(rail_.settings().peer_timeout);
  watch_at_ns_ = now_ns + limit_ns / 4;
  Error error;
  if (silence_.check(fd_, now_ns, limit_ns, &error) == Status::kOk) return;
  error.what = where() + ": " + error.what;
  fail_with(std::move(error), State::kFailed);
}

bool TcpChannel::flush_is_due() const { return !queue_.blocked() || now() >= flush_at_ns_; }

void TcpChannel::flush() {
  const int code = queue_.flush(fd_.get(), reader_.arrived(), counters);
  // Not kFailed: what the peer sent before may still be read.
  if (code != 0) fail_with(send_error(code), State::kBroken);
  if (queue_.blocked()) flush_at_ns_ = now() + kBlockedPauseNs;
}

void TcpChannel::fence() {
  if (fd_) ::shutdown(fd_.get(), SHUT_RDWR);
  state_ = State::kFenced;
}

}  // namespace slime::tcp
