#include "rendezvous/member.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "rendezvous/rendezvous.h"
#include "settings/times.h"

namespace slime::rendezvous {
namespace {

using times::kSecond;
constexpr int kTickMs = 250;

std::vector<nlohmann::json> list_in(const nlohmann::json& body, const char* key) {
  if (!body.is_object()) return {};
  const auto found = body.find(key);
  return found != body.end() && found->is_array() ? found->get<std::vector<nlohmann::json>>()
                                                  : std::vector<nlohmann::json>();
}

}  // namespace

Result<std::unique_ptr<Member>> Member::join(const Identity& identity, const Agreement& agreement,
                                             double timeout_s, Heartbeat* heartbeat,
                                             std::function<void()> tick) {
  const Terms terms{
      .where = to_string(HostPort{identity.host, identity.port}) + identity.port_source,
      .rank = static_cast<uint32_t>(identity.rank),
      .ranks = static_cast<uint32_t>(identity.size),
      .limit_ns = static_cast<uint64_t>(timeout_s * 1e9),
      .grace_ns = times::kRunMargin};
  nlohmann::json hello = hello_of(agreement);
  hello["host"] = own_host_name();
  hello["pid"] = getpid();
  auto gathered =
      join_group(terms, hello.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                 HostPort{identity.host, identity.port});
  if (!gathered) {
    Error& error = gathered.error();  // numbers of ranks are of the command line
    if (error.status == Status::kInvalid) error.status = Status::kConfig;
    return fail(std::move(error));
  }
  std::vector<RankInfo> ranks;
  for (const std::string& blob : gathered->blobs) {
    const auto rank = parse_json<nlohmann::json>(blob, "", {}).value_or(nullptr);
    ranks.push_back({displayed(text_in(rank, "host")), number_in(rank, "pid", 0)});
  }
  std::unique_ptr<Member> member(new Member(std::move(gathered->connections[0]), std::move(ranks),
                                            timeout_s, heartbeat, std::move(tick)));
  auto thread =
      start_thread("the thread of the control connection", [raw = member.get()] { raw->run(); });
  if (!thread) return fail(thread.error());
  member->thread_ = std::move(*thread);
  return member;
}

Member::Member(Fd fd, std::vector<RankInfo> ranks, double timeout_s, Heartbeat* heartbeat,
               std::function<void()> tick)
    : heartbeat_(heartbeat),
      tick_(std::move(tick)),
      timeout_ns_(static_cast<uint64_t>(timeout_s * 1e9)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      ranks_(std::move(ranks)),
      connection_(std::move(fd)),
      heard_ns_(steady_now_ns()) {}

Member::~Member() {
  if (!thread_.joinable()) return;
  leave();
  thread_.join();
}

void Member::run() {
  for (;;) {
    pollfd fds[2] = {{wake_.get(), POLLIN, 0}, {-1, 0, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (leaving_ && !connection_.has_output()) return;
      fds[1].events = static_cast<short>(POLLIN | (connection_.has_output() ? POLLOUT : 0));
      if (!failed_) fds[1].fd = connection_.fd();
    }
    (void)poll(fds, 2, kTickMs);
    uint64_t ignored = 0;
    (void)!read(wake_.get(), &ignored, sizeof ignored);
    const std::lock_guard lock(mutex_);
    if (failed_ && leaving_) return;
    if (!failed_) serve();
    if (steady_now_ns() >= stop_ns_) stop_.store(true);
    if (tick_) tick_();
  }
}

void Member::serve() {
  std::vector<Frame> frames;
  const bool alive = connection_.receive(&frames) && connection_.flush();
  for (const Frame& frame : frames) handle(frame);
  const uint64_t now = steady_now_ns();
  if (!alive && !leaving_) {
    return set_verdict("rank 0, the coordinator, is gone: " + connection_.why() +
                       " (killed, or crashed)");
  }
  if (!alive) {  // an orderly end: this rank has sent its farewell
    failed_.store(true);
    return;
  }
  if (now > heard_ns_ + timeout_ns_ + times::kRunMargin) {
    return set_verdict("rank 0, the coordinator, has not been heard from for " +
                       std::to_string((now - heard_ns_) / kSecond) + " s (--timeout)");
  }
  if (now > beat_ns_ + kSecond) {
    beat_ns_ = now;
    connection_.queue(FrameType::kHeartbeat,
                      {{"beats", heartbeat_->count()}, {"where", heartbeat_->where()}});
    (void)connection_.flush();
  }
}

void Member::handle(const Frame& frame) {
  heard_ns_ = steady_now_ns();
  if (frame.type == FrameType::kWhole) {
    if (number_in(frame.body, "number", -1) != static_cast<int64_t>(exchange_)) return;
    whole_ = list_in(frame.body, "parts");
    if (whole_.size() != ranks_.size()) return set_verdict("rank 0 sent a malformed exchange");
    has_whole_ = true;
    changed_.notify_all();
  } else if (frame.type == FrameType::kVerdict) {
    const std::string text = displayed(text_in(frame.body, "text"), kMostVerdict, Lines::kMany);
    if (!failed_) reported_ = number_in(frame.body, "reported", 0) != 0;
    set_verdict(text.empty() ? "the run failed" : text, number_in(frame.body, "usage", 0) != 0,
                static_cast<int>(number_in(frame.body, "grace_s", 0)));
  }
}

void Member::set_verdict(const std::string& text, bool usage, int grace_s) {
  if (verdict_.what.empty()) verdict_ = Error{usage ? Status::kConfig : Status::kRemote, 0, text};
  stop_ns_ = std::min(stop_ns_, steady_now_ns() + static_cast<uint64_t>(grace_s) * kSecond);
  if (grace_s == 0) stop_.store(true);
  failed_.store(true);
  changed_.notify_all();
}

void Member::wake() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

Result<std::vector<nlohmann::json>> Member::exchange(const char* label, nlohmann::json part) {
  std::unique_lock lock(mutex_);
  has_whole_ = false;
  connection_.queue(FrameType::kPart,
                    {{"number", exchange_}, {"label", label}, {"data", std::move(part)}});
  (void)connection_.flush();
  if (connection_.has_output()) wake();
  changed_.wait(lock, [this] { return has_whole_ || failed_; });
  if (!has_whole_) return fail(verdict_);
  ++exchange_;
  heartbeat_->beat();
  return std::move(whole_);
}

Error Member::fail_run(const Error& error) {
  std::unique_lock lock(mutex_);
  if (!failed_) {
    connection_.queue(FrameType::kFailure,
                      {{"text", error.what}, {"usage", error.status == Status::kConfig ? 1 : 0}});
    (void)connection_.flush();
    wake();
    changed_.wait_for(lock, std::chrono::nanoseconds(times::kRunVerdict),
                      [this] { return failed_.load(); });
  }
  return verdict_.what.empty() ? error : verdict_;
}

Error Member::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

void Member::leave() {
  const std::lock_guard lock(mutex_);
  if (leaving_) return;
  leaving_ = true;
  if (!failed_) connection_.queue(FrameType::kFarewell, nlohmann::json::object());
  wake();
}

}  // namespace slime::rendezvous
