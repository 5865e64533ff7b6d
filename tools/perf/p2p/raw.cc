#include "tools/perf/p2p/raw.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/clock.h"
#include "base/net/socket.h"

namespace slime::perf::p2p {
namespace {

constexpr uint64_t kSpinNs = 20'000;
constexpr uint32_t kEnd = 0, kWrite = 1, kRead = 2;

struct Header {
  uint64_t offset = 0;
  uint32_t pieces = 0, kind = kEnd;
  uint64_t most_a_call = 0;
  uint64_t piece = 0, stride = 0;
};

Result<Fd> loopback_socket() {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail(descriptor_error(errno, "socket"));
  return fd;
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Result<void> wait_for(const Fd& fd, short event) {
  pollfd waited{fd.get(), event, 0};
  if (::poll(&waited, 1, 60'000) == 1) return {};
  return fail(Status::kTimeout, "the plain connection is silent for 60 s");
}

// All of these vectors, in either direction.
template <typename Call>
Result<void> move_all(const Fd& fd, std::span<iovec> vectors, uint64_t most_a_call, short event,
                      Call call) {
  uint64_t since_ns = 0;
  while (!vectors.empty()) {
    iovec part{vectors.front().iov_base, most_a_call};
    const bool is_long = vectors.front().iov_len > most_a_call;
    msghdr message = {};
    message.msg_iov = is_long ? &part : vectors.data();
    message.msg_iovlen = is_long ? 1 : std::min<size_t>(vectors.size(), 512);
    ssize_t moved = call(fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (moved == 0) return fail(Status::kRemote, "the other end of the plain connection has gone");
    if (moved < 0 && errno != EAGAIN && errno != EINTR) {
      return fail(system_error(errno, "the plain connection broke"));
    }
    if (moved < 0) {
      const uint64_t now_ns = steady_now_ns();
      if (since_ns == 0) since_ns = now_ns;
      if (now_ns - since_ns < kSpinNs) continue;
      if (auto ready = wait_for(fd, event); !ready) return ready;
      continue;
    }
    since_ns = 0;
    while (moved > 0) {
      iovec& first = vectors.front();
      const size_t step = std::min(static_cast<size_t>(moved), first.iov_len);
      first.iov_base = static_cast<std::byte*>(first.iov_base) + step;
      first.iov_len -= step;
      moved -= static_cast<ssize_t>(step);
      if (first.iov_len == 0) vectors = vectors.subspan(1);
    }
  }
  return {};
}

Result<void> send_all(const Fd& fd, std::span<iovec> vectors, uint64_t most_a_call) {
  return move_all(fd, vectors, most_a_call, POLLOUT,
                  [](int to, msghdr* message, int flags) { return ::sendmsg(to, message, flags); });
}
Result<void> receive_all(const Fd& fd, std::span<iovec> vectors, uint64_t most_a_call) {
  return move_all(fd, vectors, most_a_call, POLLIN, [](int from, msghdr* message, int flags) {
    return ::recvmsg(from, message, flags & ~MSG_NOSIGNAL);
  });
}

void add_pieces(const Header& header, std::byte* memory, std::vector<iovec>* vectors) {
  for (uint32_t i = 0; i < header.pieces; ++i) {
    vectors->push_back({memory + header.offset + i * header.stride, header.piece});
  }
}

// As tcp rails do within a host: another congestion control would pace the loopback interface.
Result<void> tune(const Fd& fd) {
  (void)set_congestion_control(fd, "reno");
  const int on = 1;
  if (::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0) return {};
  return fail(system_error(errno, "TCP_NODELAY"));
}

Header header_of(const Layout& layout, uint32_t slot, Operation operation, uint64_t most_a_call) {
  return {layout.offset(slot, 0),
          layout.batch,
          operation == Operation::kRead ? kRead : kWrite,
          most_a_call,
          layout.piece,
          layout.stride};
}

bool fits(const Header& header, size_t bytes) {
  const uint64_t last = header.offset + (header.pieces - 1) * header.stride;
  return header.pieces > 0 && header.pieces <= 1'000'000 && header.stride <= bytes &&
         header.most_a_call > 0 && header.offset <= bytes && last <= bytes &&
         header.piece <= bytes - last;
}

}  // namespace

Result<std::unique_ptr<RawTarget>> RawTarget::open(std::byte* memory, size_t bytes) {
  auto listener = loopback_socket();
  if (!listener) return fail(std::move(listener.error()));
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener->get(), any, length) != 0 || ::listen(listener->get(), 1) != 0 ||
      ::getsockname(listener->get(), any, &length) != 0) {
    return fail(system_error(errno, "the plain loop cannot listen at 127.0.0.1"));
  }
  const uint16_t port = ntohs(address.sin_port);
  return std::unique_ptr<RawTarget>(new RawTarget(std::move(*listener), port, memory, bytes));
}

Result<void> RawTarget::serve() {
  if (auto ready = wait_for(listener_, POLLIN); !ready) return ready;
  const Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return fail(descriptor_error(errno, "accept"));
  if (auto tuned = tune(fd); !tuned) return tuned;
  for (;;) {
    Header header;
    iovec vector{&header, sizeof header};
    if (auto got = receive_all(fd, {&vector, 1}, sizeof header); !got) return got;
    if (header.kind == kEnd) return {};
    if (!fits(header, bytes_)) return fail(Status::kRemote, "the plain loop got no header");
    std::vector<iovec> vectors;
    add_pieces(header, memory_, &vectors);
    if (header.kind == kWrite) {
      if (auto got = receive_all(fd, vectors, header.most_a_call); !got) return got;
      vectors = {{&header, sizeof(uint64_t)}};
    }
    if (auto sent = send_all(fd, vectors, header.most_a_call); !sent) return sent;
  }
}

Result<std::unique_ptr<RawInitiator>> RawInitiator::connect(uint16_t port, std::byte* memory) {
  auto fd = loopback_socket();
  if (!fd) return fail(std::move(fd.error()));
  const sockaddr_in address = loopback(port);
  if (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(system_error(errno, "the plain loop cannot connect to 127.0.0.1:%u", port));
  }
  if (auto tuned = tune(*fd); !tuned) return fail(std::move(tuned.error()));
  return std::unique_ptr<RawInitiator>(new RawInitiator(std::move(*fd), memory));
}

Requests RawInitiator::requests(const Layout& layout, Operation operation, uint64_t most_a_call) {
  const auto begin = [this, layout, operation, most_a_call](uint32_t slot) -> Result<void> {
    Header header = header_of(layout, slot, operation, most_a_call);
    std::vector<iovec> vectors = {{&header, sizeof header}};
    if (operation != Operation::kRead) add_pieces(header, memory_, &vectors);
    return send_all(fd_, vectors, most_a_call);
  };
  const auto wait = [this, layout, operation, most_a_call](uint32_t slot) -> Result<void> {
    uint64_t answer = 0;
    std::vector<iovec> vectors = {{&answer, sizeof answer}};
    if (operation == Operation::kRead) {
      vectors.clear();
      add_pieces(header_of(layout, slot, operation, most_a_call), memory_, &vectors);
    }
    return receive_all(fd_, vectors, most_a_call);
  };
  return {begin, wait};
}

Result<void> RawInitiator::end() {
  Header header;
  iovec vector{&header, sizeof header};
  return send_all(fd_, {&vector, 1}, sizeof header);
}

}  // namespace slime::perf::p2p
