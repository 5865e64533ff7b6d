// TCP sockets: addresses, connections, and small control messages. Every socket made here is
// non-blocking and closed on exec; nothing here waits, resolves names or raises SIGPIPE.
//
// Calls that may have to be repeated return a Status: kAgain means "nothing yet, call again";
// anything but kOk and kAgain is final and is described in *error.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace slime {

// What the kernel answers to UDP_SEGMENT when it cannot cut a message into packets on this route:
// longer than its MTU, a device without checksums, IPsec, an old kernel (linux/net/ipv4/udp.c,
// udp_send_skb).
bool refuses_segments(int code);

// Owns one file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// An IPv4 or IPv6 address with a port. Default: 0.0.0.0:0.
class SocketAddress {
 public:
  static constexpr size_t kWireBytes = 28;
  using Wire = std::array<std::byte, kWireBytes>;

  SocketAddress();
  static Result<SocketAddress> from_sockaddr(const sockaddr* address, socklen_t bytes);
  // Numeric only: "10.0.0.1", "10.0.0.1:80", "::1", "[::1]:80", "[fe80::1%eth0]:80".
  static Result<SocketAddress> parse(std::string_view text);
  static Result<SocketAddress> unpack(std::span<const std::byte> wire);

  Wire pack() const;              // the same bytes on every machine
  std::string to_string() const;  // "10.0.0.1:80", "[::1]:80"
  std::string host() const;       // "10.0.0.1", "::1", "fe80::1%2"

  sa_family_t family() const { return storage_.any.sa_family; }
  bool is_ipv6() const { return family() == AF_INET6; }
  uint16_t port() const;
  void set_port(uint16_t port);
  // The interface index of a link-local IPv6 address. It means something on this host only: who
  // receives such an address from a peer must set the scope of the own interface.
  uint32_t scope() const { return is_ipv6() ? storage_.v6.sin6_scope_id : 0; }
  void set_scope(uint32_t scope);
  bool is_link_local() const;
  bool is_loopback() const;
  bool is_any() const;  // 0.0.0.0 or ::

  const sockaddr* data() const { return &storage_.any; }
  socklen_t size() const { return is_ipv6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

  friend bool operator==(const SocketAddress& left, const SocketAddress& right);

 private:
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } storage_;
};

// Port 0: the kernel picks one, see local_address().
// The backlog is as long as the kernel lets it be: while it is full, connecting takes seconds.
Result<Fd> listen_on(const SocketAddress& address, int backlog = SOMAXCONN);

// `source` (its port is normally 0) chooses the local address and so the rail; nullptr: the
// kernel's choice. `buffer_bytes` as in set_buffers(): it must be known before the connection is.
Result<Fd> start_connect(const SocketAddress& peer, const SocketAddress* source = nullptr,
                         uint64_t buffer_bytes = 0);
Status finish_connect(const Fd& fd, const SocketAddress& peer, Error* error);

struct Accepted {
  Fd fd;
  SocketAddress peer;
};
// kNoMemory: out of descriptors; the connection stays in the backlog.
Status accept_one(const Fd& listener, Accepted* accepted, Error* error);

// Closes with a reset, which tells the peer "not now" (it may try again) from an orderly end.
void abort_connection(Fd fd);
// Whether a failed call found that.
bool is_abort(const Error& error);

Result<SocketAddress> local_address(const Fd& fd);
Result<SocketAddress> peer_address(const Fd& fd);
bool is_within_host(const Fd& fd);  // both ends have the same address

Result<void> set_nodelay(const Fd& fd);
// 0 leaves the kernel's autotuning on. Returns what was granted, which net.core.{r,w}mem_max may
// have cut. Connections inherit the listener's.
Result<uint64_t> set_buffers(const Fd& fd, uint64_t bytes);
// As /proc/sys/net/ipv4/tcp_available_congestion_control names them.
Result<void> set_congestion_control(const Fd& fd, const std::string& name);
// Marks what is sent: IP_TOS or IPV6_TCLASS without the two ECN bits, and its precedence as the
// packets' priority in the queues of this host. `value`: the TOS byte, 0 to 255.
Result<void> set_traffic_class(const Fd& fd, int value);
// The longest pause between two tries of the kernel to send again what was lost (TCP_RTO_MAX_MS,
// Linux 6.15): an eighth of `seconds`, 1 s to 2 min. Without it the pauses double up to 2 minutes,
// and a path that returns after an outage stays unused for as long as the outage was.
Result<void> set_longest_resend_pause(const Fd& fd, double seconds);
// Fails an idle connection with ETIMEDOUT after `seconds` of silence. The kernel sends no
// keepalives while data is unacknowledged: that is what SilenceWatch is for.
Result<void> set_keepalive(const Fd& fd, double seconds);

// Finds a dead peer while data of ours waits for it. TCP_USER_TIMEOUT would also kill a live peer
// that does not read for that long (linux/net/ipv4/tcp_timer.c, tcp_probe_timer): a rank stopped
// by a debugger, or late with its receives. Here only a peer whose kernel is silent counts as dead.
class SilenceWatch {
 public:
  // Costs one getsockopt: call it once in a while (a quarter of the limit), not at every poll.
  // kTimeout: the peer has acknowledged nothing for `limit_ns` although it had to. `now_ns` is of
  // SteadyClock, which this reads once more: what the kernel answers is of its own time.
  Status check(const Fd& fd, uint64_t now_ns, uint64_t limit_ns, Error* error);

 private:
  uint64_t waiting_since_ns_ = 0;  // 0: nothing waits for an acknowledgement
  uint64_t checked_ns_ = 0;
};

// Whether the peer's kernel owes an acknowledgement and has sent none for `ns`. False also where
// the kernel cannot be asked.
bool is_silent(const Fd& fd, uint64_t ns);

// Move bytes [*done, size) of a control message as far as they go now. kOk: complete.
// A peer that ended the stream is kRemote with error->code 0.
Status send_message(const Fd& fd, std::span<const std::byte> message, size_t* done, Error* error);
Status receive_message(const Fd& fd, std::span<std::byte> message, size_t* done, Error* error);

// A control message of at most kCapacity bytes, with how much of it has been moved.
template <size_t kCapacity>
struct ControlMessage {
  std::array<std::byte, kCapacity> bytes{};
  size_t size = kCapacity;  // of the message; never more than kCapacity
  size_t done = 0;

  Status send(const Fd& fd, Error* error) {
    return send_message(fd, std::span<const std::byte>(bytes.data(), size), &done, error);
  }
  Status receive(const Fd& fd, Error* error) {
    return receive_message(fd, std::span<std::byte>(bytes.data(), size), &done, error);
  }
};

}  // namespace slime
