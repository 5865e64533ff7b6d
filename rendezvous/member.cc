#include "rendezvous/member.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/process.h"
#include "rendezvous/connect.h"

namespace slime::rendezvous {
namespace {

constexpr uint64_t kSecond = 1000000000;
constexpr int kTickMs = 250;
constexpr uint64_t kRetryMs = 100;
constexpr auto kVerdictWait = std::chrono::seconds(5);

uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

std::vector<SocketAddress> resolve(const Identity& identity, std::string* why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(identity.host.c_str(), nullptr, &hints, &found);
  if (code != 0) *why = gai_strerror(code);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    auto address = SocketAddress::from_sockaddr(one->ai_addr, one->ai_addrlen);
    if (!address) continue;
    address->set_port(identity.port);
    addresses.push_back(*address);
  }
  if (found != nullptr) freeaddrinfo(found);
  return addresses;
}

Result<Fd> connect_once(const SocketAddress& address, uint64_t deadline_ns) {
  auto fd = start_connect(address);
  if (!fd) return fd;
  Error error;
  const Status status = connect_until(SteadyClock::instance(), deadline_ns, *fd, address, &error);
  if (status == Status::kOk) return fd;
  if (status != Status::kAgain) return fail(std::move(error));
  return fail(make_error(Status::kTimeout, 0, "no answer from %s", address.to_string().c_str()));
}

// Rank 0 may start later than we do, so a refusal is tried again until the deadline; not where it
// `was_there`, as it does not start twice.
Result<Fd> reach(const Identity& identity, uint64_t deadline, bool was_there) {
  std::string why = "it has no address";
  do {
    bool nobody = true;
    for (const SocketAddress& address : resolve(identity, &why)) {
      auto fd = connect_once(address, std::min(deadline, now_ns() + 10 * kSecond));
      if (fd) return fd;
      why = fd.error().what;
      nobody = nobody && fd.error().code == ECONNREFUSED;
    }
    if (was_there && nobody) break;
    usleep(kRetryMs * 1000);
  } while (now_ns() < deadline);
  return fail(make_error(Status::kTimeout, 0, "rank %d cannot reach rank 0 at %s:%u%s: %s",
                         identity.rank, identity.host.c_str(), identity.port,
                         identity.port_source.c_str(), why.c_str()));
}

std::vector<nlohmann::json> list_in(const nlohmann::json& body, const char* key) {
  if (!body.is_object()) return {};
  const auto found = body.find(key);
  return found != body.end() && found->is_array() ? found->get<std::vector<nlohmann::json>>()
                                                  : std::vector<nlohmann::json>();
}

std::string host_name() {
  char name[256] = "";
  (void)gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Result<std::unique_ptr<Member>> Member::join(const Identity& identity, const Agreement& agreement,
                                             double timeout_s, Pulse* pulse,
                                             std::function<void()> tick) {
  const uint64_t deadline = now_ns() + static_cast<uint64_t>(timeout_s * 1e9);
  auto fd = reach(identity, deadline, false);
  if (!fd) return fail(fd.error());
  std::unique_ptr<Member> member(
      new Member(Connection(std::move(*fd), kMaxFrameBytes), timeout_s, pulse, std::move(tick)));
  nlohmann::json hello = to_json(agreement);
  hello["rank"] = identity.rank;
  hello["host"] = host_name();
  hello["pid"] = getpid();
  // The coordinator gives up first and says who is missing; this limit is for a lost coordinator.
  const auto ask = [&] {
    member->connection_.queue(FrameType::kHello, hello);
    return member->wait_for_welcome(timeout_s + 10);
  };
  auto welcome = ask();
  // A reset is no answer: strangers took this place at rank 0's port before the hello was there.
  while (!welcome && member->connection_.was_reset() && member->heard_ns_ == 0 &&
         now_ns() < deadline) {
    usleep(kRetryMs * 1000);
    fd = reach(identity, deadline, true);
    if (!fd) break;
    member->connection_ = Connection(std::move(*fd), kMaxFrameBytes);
    welcome = ask();
  }
  if (!welcome) return fail(welcome.error());
  auto thread =
      start_thread("the thread of the control connection", [raw = member.get()] { raw->run(); });
  if (!thread) return fail(thread.error());
  member->thread_ = std::move(*thread);
  return member;
}

Member::Member(Connection connection, double timeout_s, Pulse* pulse, std::function<void()> tick)
    : pulse_(pulse),
      tick_(std::move(tick)),
      timeout_ns_(static_cast<uint64_t>(timeout_s * 1e9)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      connection_(std::move(connection)) {}

Member::~Member() {
  if (!thread_.joinable()) return;
  leave();
  thread_.join();
}

Result<void> Member::wait_for_welcome(double timeout_s) {
  const uint64_t deadline = now_ns() + static_cast<uint64_t>(timeout_s * 1e9);
  uint64_t beat = now_ns();
  while (now_ns() < deadline) {
    std::vector<Frame> frames;
    const bool alive = connection_.flush() && connection_.receive(&frames);
    if (!frames.empty()) heard_ns_ = now_ns();
    for (const Frame& frame : frames) {
      const auto welcomed = welcomed_by(frame);
      if (!welcomed) return fail(welcomed.error());
      if (*welcomed) return {};
    }
    if (!alive) {
      return fail(make_error(Status::kRemote, 0, "rank 0 is gone: %s", connection_.why().c_str()));
    }
    if (now_ns() > beat + kSecond) {
      beat = now_ns();
      connection_.queue(FrameType::kHeartbeat, {{"pulse", 0}, {"where", "joining"}});
    }
    pollfd wait{connection_.fd(), POLLIN, 0};
    (void)poll(&wait, 1, kTickMs);
  }
  return fail(make_error(Status::kTimeout, 0, "rank 0 did not answer for %.0f s", timeout_s));
}

// True: all ranks are here. False: the frame says nothing about that.
Result<bool> Member::welcomed_by(const Frame& frame) {
  const std::string text = text_in(frame.body, "text");
  if (frame.type == FrameType::kRefused) {
    return fail(make_error(Status::kConfig, 0, "rank 0 refused us: %s", text.c_str()));
  }
  if (frame.type == FrameType::kVerdict) {
    const bool usage = number_in(frame.body, "usage", 0) != 0;
    return fail(Error{usage ? Status::kConfig : Status::kRemote, 0, text});
  }
  if (frame.type != FrameType::kWelcome) return false;
  for (const auto& rank : list_in(frame.body, "ranks")) {
    ranks_.push_back({text_in(rank, "host"), number_in(rank, "pid", 0)});
  }
  return true;
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
    if (now_ns() >= stop_ns_) stop_.store(true);
    if (tick_) tick_();
  }
}

void Member::serve() {
  std::vector<Frame> frames;
  const bool alive = connection_.receive(&frames) && connection_.flush();
  for (const Frame& frame : frames) handle(frame);
  const uint64_t now = now_ns();
  if (!alive && !leaving_) {
    return set_verdict("rank 0, the coordinator, is gone: " + connection_.why() +
                       " (killed, or crashed)");
  }
  if (!alive) {  // after this rank's farewell: nothing is left to be said
    failed_.store(true);
    return;
  }
  if (now > heard_ns_ + timeout_ns_ + 10 * kSecond) {
    return set_verdict("rank 0, the coordinator, has not been heard from for " +
                       std::to_string((now - heard_ns_) / kSecond) + " s (--timeout)");
  }
  if (now > beat_ns_ + kSecond) {
    beat_ns_ = now;
    connection_.queue(FrameType::kHeartbeat,
                      {{"pulse", pulse_->count()}, {"where", pulse_->where()}});
    (void)connection_.flush();
  }
}

void Member::handle(const Frame& frame) {
  heard_ns_ = now_ns();
  if (frame.type == FrameType::kWhole) {
    if (number_in(frame.body, "number", -1) != static_cast<int64_t>(exchange_)) return;
    whole_ = list_in(frame.body, "parts");
    if (whole_.size() != ranks_.size()) return set_verdict("rank 0 sent a malformed exchange");
    has_whole_ = true;
    changed_.notify_all();
  } else if (frame.type == FrameType::kVerdict) {
    const std::string text = text_in(frame.body, "text");
    if (!failed_) reported_ = number_in(frame.body, "reported", 0) != 0;
    set_verdict(text.empty() ? "the run failed" : text, number_in(frame.body, "usage", 0) != 0,
                static_cast<int>(number_in(frame.body, "grace_s", 0)));
  }
}

void Member::set_verdict(const std::string& text, bool usage, int grace_s) {
  if (verdict_.what.empty()) verdict_ = Error{usage ? Status::kConfig : Status::kRemote, 0, text};
  stop_ns_ = std::min(stop_ns_, now_ns() + static_cast<uint64_t>(grace_s) * kSecond);
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
  pulse_->beat();
  return std::move(whole_);
}

Error Member::fail_run(const Error& error) {
  std::unique_lock lock(mutex_);
  if (!failed_) {
    connection_.queue(FrameType::kFailure,
                      {{"text", error.what}, {"usage", error.status == Status::kConfig ? 1 : 0}});
    (void)connection_.flush();
    wake();
    changed_.wait_for(lock, kVerdictWait, [this] { return failed_.load(); });
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
