// Options of a connection, and the detection of a dead peer.
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/machine/sysfs.h"
#include "base/net/socket.h"

namespace slime {
namespace {

constexpr int kMaxKeepaliveProbes = 127;       // linux/include/net/tcp.h, MAX_TCP_KEEPCNT
constexpr int kMaxKeepaliveSeconds = 32767;    // the same, MAX_TCP_KEEPIDLE and _KEEPINTVL
constexpr uint8_t kMinProbes = 3;              // unanswered, of a full window
constexpr uint64_t kTickNs = 20'000'000;       // TCP_INFO counts in jiffies of at most 10 ms
constexpr uint64_t kMaxBufferBytes = 1 << 30;  // the kernel doubles it within an int
constexpr int kEcnBits = 3;                    // RFC 3168, 5
constexpr int kMostPriority = 6;               // socket(7): more needs CAP_NET_ADMIN
constexpr int kTcpRtoMaxMs = 44;               // TCP_RTO_MAX_MS, linux/tcp.h since Linux 6.15
constexpr int kUsualRetries = 15;              // tcp_retries2, ip-sysctl.rst

Result<void> set_option(const Fd& fd, int level, int option, int value, const char* name) {
  if (setsockopt(fd.get(), level, option, &value, sizeof value) == 0) return {};
  return fail(system_error(errno, "setsockopt %s=%d on descriptor %d", name, value, fd.get()));
}

// False: errno says why.
bool read_info(const Fd& fd, tcp_info* info) {
  socklen_t bytes = sizeof *info;
  return getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, info, &bytes) == 0;
}

// Sent data is not acknowledged, or a probe of a full window has no answer. The kernel sets the
// number of probes back to 0 at every answer.
bool owes_acknowledgement(const tcp_info& info) {
  return info.tcpi_unacked > 0 || info.tcpi_probes > 0;
}

uint64_t silence_ns(const tcp_info& info) { return uint64_t{info.tcpi_last_ack_recv} * 1'000'000; }

Result<uint64_t> granted_bytes(const Fd& fd, int option, const char* name) {
  int value = 0;
  socklen_t bytes = sizeof value;
  if (getsockopt(fd.get(), SOL_SOCKET, option, &value, &bytes) == 0) {
    return static_cast<uint64_t>(value) / 2;  // socket(7): the kernel doubles what was asked for
  }
  return fail(system_error(errno, "getsockopt %s on descriptor %d", name, fd.get()));
}

}  // namespace

bool refuses_segments(int code) {
  return code == EINVAL || code == EMSGSIZE || code == EIO || code == EOPNOTSUPP;
}

Result<void> set_nodelay(const Fd& fd) {
  return set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
}

Result<void> set_congestion_control(const Fd& fd, const std::string& name) {
  const auto length = static_cast<socklen_t>(name.size());
  if (setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), length) == 0) return {};
  return fail(
      system_error(errno, "setsockopt TCP_CONGESTION=%s on descriptor %d", name.c_str(), fd.get()));
}

Result<uint64_t> set_buffers(const Fd& fd, uint64_t bytes) {
  if (bytes == 0) return uint64_t{0};
  if (bytes > kMaxBufferBytes) {
    return fail(make_error(Status::kInvalid, 0, "socket buffer of %llu bytes: at most %llu",
                           static_cast<unsigned long long>(bytes),
                           static_cast<unsigned long long>(kMaxBufferBytes)));
  }
  uint64_t least = UINT64_MAX;
  for (const auto& [option, name] : {std::pair(SO_SNDBUF, "SO_SNDBUF"), {SO_RCVBUF, "SO_RCVBUF"}}) {
    auto set = set_option(fd, SOL_SOCKET, option, static_cast<int>(bytes), name);
    if (!set) return fail(std::move(set.error()));
    auto granted = granted_bytes(fd, option, name);
    if (!granted) return granted;
    least = std::min(least, *granted);
  }
  return least;
}

Result<void> set_traffic_class(const Fd& fd, int value) {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0) {
    return fail(system_error(errno, "getsockopt SO_DOMAIN on descriptor %d", fd.get()));
  }
  const int marks = value & ~kEcnBits;
  auto set = domain == AF_INET6 ? set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, marks, "IPV6_TCLASS")
                                : set_option(fd, IPPROTO_IP, IP_TOS, marks, "IP_TOS");
  // IP_TOS has set a priority already, but by the bits that TOS had before DSCP
  // (linux/include/net/route.h, rt_tos2priority), and IPV6_TCLASS none.
  const int precedence = std::min(value >> 5, kMostPriority);
  if (!set || precedence == 0) return set;
  return set_option(fd, SOL_SOCKET, SO_PRIORITY, precedence, "SO_PRIORITY");
}

// The kernel gives up after tcp_retries2 tries, whatever time they took. With the usual 15 tries,
// and the pause that is set here, that is later than `seconds`. With fewer tries it would be
// earlier, so the pause is not set then.
Result<void> set_longest_resend_pause(const Fd& fd, double seconds) {
  const auto retries = read_number("/proc/sys/net/ipv4/tcp_retries2");
  if (retries.value_or(kUsualRetries) < kUsualRetries) return {};
  const int pause_ms = static_cast<int>(std::clamp(seconds * 1000 / 8, 1000.0, 120'000.0));
  auto set = set_option(fd, IPPROTO_TCP, kTcpRtoMaxMs, pause_ms, "TCP_RTO_MAX_MS");
  if (!set && set.error().code == ENOPROTOOPT) return {};
  return set;
}

Result<void> set_keepalive(const Fd& fd, double seconds) {
  if (!(seconds > 0) || seconds > INT_MAX / 2) {
    return fail(make_error(Status::kInvalid, 0, "keepalive of %g seconds", seconds));
  }
  // The connection is idle for a third of the time; then probes follow a tenth of the time apart.
  const int total = std::max(2, static_cast<int>(std::lround(seconds)));
  const int idle = std::clamp(total / 3, 1, kMaxKeepaliveSeconds);
  const int interval = std::clamp(total / 10, 1, kMaxKeepaliveSeconds);
  const int probes = std::clamp((total - idle) / interval, 1, kMaxKeepaliveProbes);
  const struct {
    int level, option, value;
    const char* name;
  } options[] = {{IPPROTO_TCP, TCP_KEEPIDLE, idle, "TCP_KEEPIDLE"},
                 {IPPROTO_TCP, TCP_KEEPINTVL, interval, "TCP_KEEPINTVL"},
                 {IPPROTO_TCP, TCP_KEEPCNT, probes, "TCP_KEEPCNT"},
                 {SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"}};
  for (const auto& o : options) {
    if (auto set = set_option(fd, o.level, o.option, o.value, o.name); !set) return set;
  }
  return {};
}

bool is_silent(const Fd& fd, uint64_t ns) {
  tcp_info info{};
  return read_info(fd, &info) && owes_acknowledgement(info) && silence_ns(info) >= ns;
}

Status SilenceWatch::check(const Fd& fd, uint64_t now_ns, uint64_t limit_ns, Error* error) {
  tcp_info info{};
  if (!read_info(fd, &info)) {
    *error = system_error(errno, "getsockopt TCP_INFO on descriptor %d", fd.get());
    return error->status;
  }
  if (!owes_acknowledgement(info)) {
    waiting_since_ns_ = 0;
    return Status::kOk;
  }
  // If no acknowledgement has come since the last check, the same data still waits. The kernel's
  // answer may be much younger than now_ns, if this thread was delayed before the call.
  const uint64_t answered_ns = std::max(now_ns, steady_now_ns());
  const uint64_t last_answer_ns = answered_ns - std::min(silence_ns(info), answered_ns);
  const bool answered = last_answer_ns + kTickNs > checked_ns_;
  if (waiting_since_ns_ == 0 || answered) waiting_since_ns_ = now_ns;
  checked_ns_ = now_ns;
  if (now_ns - waiting_since_ns_ < limit_ns) return Status::kOk;
  // Probes are up to two minutes apart, so a single lost one proves nothing.
  if (info.tcpi_unacked == 0 && info.tcpi_probes < kMinProbes) return Status::kOk;
  const auto peer = peer_address(fd);
  *error = make_error(
      Status::kTimeout, ETIMEDOUT,
      "%s has acknowledged nothing for %.1f seconds (%u segments sent again, %u "
      "probes unanswered): is the host or a link down? NCCL_SLIME_PEER_TIMEOUT "
      "sets how long to wait",
      peer ? peer->to_string().c_str() : "the peer", (now_ns - waiting_since_ns_) / 1e9,
      static_cast<unsigned>(info.tcpi_retransmits), static_cast<unsigned>(info.tcpi_probes));
  return Status::kTimeout;
}

}  // namespace slime
