// TCP sockets: addresses, connections, and small control messages. Every socket that these
// functions make is non-blocking and closed on exec. None of them waits, resolves names or raises
// SIGPIPE.
//
// Calls that may have to be repeated return a Status. kAgain: nothing has happened yet, call again.
// Anything but kOk and kAgain is final, and *error describes it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace slime {

// Whether this errno means that the kernel cannot cut a message into packets (UDP_SEGMENT) on this
// route: a packet is longer than its MTU, the device has no checksums, IPsec is in use, or the
// kernel is old (linux/net/ipv4/udp.c, udp_send_skb).
bool refuses_segments(int code);

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
  // The interface index of a link-local IPv6 address. It has a meaning on this host only. A host
  // that receives such an address from a peer must set the scope to its own interface.
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

// The two parts of an address that a user writes: "host:port", "host" or "[::1]:port", with numbers
// or a name. The port is a number from 1 to 65535; where none is written it is `default_port`, and
// where that is 0 one must be written. The error begins with `what`: the setting and its purpose.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
std::string to_string(const HostPort& host);  // as it is written
Result<HostPort> split_host_port(std::string_view text, uint16_t default_port, const char* what);
// A host without a port, by name or address; one of IPv6 may be in brackets.
Result<std::string> read_host(std::string_view text, const char* what);

// With port 0 the kernel chooses a port, see local_address(). The backlog is as long as the kernel
// allows, because connecting takes seconds while it is full. At [::] it takes callers of IPv4 too.
Result<Fd> listen_on(const SocketAddress& address, int backlog = SOMAXCONN);

// Fits the least MTU of IPv6: 1280 (RFC 8200, 5) less the headers of IPv6 and TCP.
inline constexpr int kSmallSegment = 1220;

// What must be set before a connection.
struct ConnectOptions {
  // The local address (its port is normally 0), and so the rail; nullptr: the kernel chooses.
  const SocketAddress* source = nullptr;
  uint64_t buffer_bytes = 0;   // as for set_buffers()
  std::string interface = {};  // as for bind_to_interface(); empty: none
  int max_segment = 0;         // bytes, both ways (tcp(7), TCP_MAXSEG); 0: as the MTUs say
};
Result<Fd> start_connect(const SocketAddress& peer, const ConnectOptions& options = {});
Status finish_connect(const Fd& fd, const SocketAddress& peer, Error* error);

struct Accepted {
  Fd fd;
  SocketAddress peer;
};
// kNoMemory: out of descriptors; the connection stays in the backlog.
Status accept_one(const Fd& listener, Accepted* accepted, Error* error);

// Closes with a reset. The peer can distinguish it from an orderly end, and may try again.
void abort_connection(Fd fd);
// Whether a call failed because the peer did that.
bool is_abort(const Error& error);

Result<SocketAddress> local_address(const Fd& fd);
Result<SocketAddress> peer_address(const Fd& fd);
bool is_within_host(const Fd& fd);  // both ends have the same address

// From now on the socket sends and hears by this interface only. A process without privileges may
// do that to an unbound socket from Linux 5.7 on (net/core/sock.c, sock_bindtoindex). False: it is
// not allowed, and the routes decide; one by source address (ip-rule(8)) may do the same.
bool bind_to_interface(const Fd& fd, const std::string& interface);
Result<void> set_nodelay(const Fd& fd);
// Sets the size of the socket's buffers; 0 leaves the kernel's autotuning on. Returns the size that
// the kernel granted, which net.core.{r,w}mem_max may limit. Connections inherit the listener's
// size.
Result<uint64_t> set_buffers(const Fd& fd, uint64_t bytes);
// `name` is one of /proc/sys/net/ipv4/tcp_available_congestion_control.
Result<void> set_congestion_control(const Fd& fd, const std::string& name);
// Marks the packets that are sent: IP_TOS or IPV6_TCLASS without the two ECN bits, and the
// precedence as the packets' priority in the queues of this host. `value` is the TOS byte, 0 to
// 255.
Result<void> set_traffic_class(const Fd& fd, int value);
// Limits the pause between two tries of the kernel to send lost bytes again (TCP_RTO_MAX_MS, Linux
// 6.15) to an eighth of `seconds`, 1 s to 2 min. Without it the pauses double up to 2 minutes, and
// a path that returns after an outage stays unused for as long as the outage was.
Result<void> set_longest_resend_pause(const Fd& fd, double seconds);
// Fails an idle connection with ETIMEDOUT after `seconds` of silence. The kernel sends no
// keepalives while data is unacknowledged; SilenceWatch is for that case.
Result<void> set_keepalive(const Fd& fd, double seconds);

// Finds a dead peer while sent data waits for it. TCP_USER_TIMEOUT would also end the connection to
// a live peer that does not read for that long (linux/net/ipv4/tcp_timer.c, tcp_probe_timer): a
// rank that a debugger has stopped, or that is late with its receives. Here a peer counts as dead
// only if its kernel is silent.
//
// States: nothing waits for an acknowledgement (waiting_since_ns_ is 0), or something has waited
// since then without one. Thread: that of the connection.
class SilenceWatch {
 public:
  // It costs one getsockopt: call it at intervals (a quarter of the limit), not at every poll.
  // kTimeout: the peer has acknowledged nothing for `limit_ns` although it had to. `now_ns` is of
  // SteadyClock. This reads that clock once more, because the kernel's answer may be younger.
  Status check(const Fd& fd, uint64_t now_ns, uint64_t limit_ns, Error* error);

 private:
  uint64_t waiting_since_ns_ = 0;  // 0: nothing waits for an acknowledgement
  uint64_t checked_ns_ = 0;
};

// Whether the peer's kernel owes an acknowledgement and has sent none for `ns`. Also false if this
// host's kernel does not answer the question.
bool is_silent(const Fd& fd, uint64_t ns);

// Send or receive as many of the bytes [*done, size) of a control message as possible now. kOk: the
// message is complete. If the peer ended the stream, the status is kRemote with error->code 0.
Status send_message(const Fd& fd, std::span<const std::byte> message, size_t* done, Error* error);
Status receive_message(const Fd& fd, std::span<std::byte> message, size_t* done, Error* error);

// A control message that is sent or received piece by piece, as it stands in memory. send() and
// receive() return kAgain until all of it has passed; begun() says whether any byte has. restart()
// begins again, on another connection.
template <typename T>
class ControlMessage {
 public:
  T value{};
  Status send(const Fd& fd, Error* error) {
    return send_message(fd, std::as_bytes(std::span(&value, 1)), &done_, error);
  }
  Status receive(const Fd& fd, Error* error) {
    return receive_message(fd, std::as_writable_bytes(std::span(&value, 1)), &done_, error);
  }
  bool begun() const { return done_ > 0; }
  void restart() { done_ = 0; }

 private:
  size_t done_ = 0;
};

}  // namespace slime
