#include "tools/perf/p2p/plain_tcp.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/net/port_range.h"
#include "tools/common/bytes.h"

namespace slime::perf::p2p {
namespace {

using nlohmann::json;

// Bytes of a piece per call into the kernel, at most.
constexpr uint64_t kWays[] = {uint64_t{1} << 40, 1 << 20, 256 << 10, 64 << 10};
constexpr int kNonceMs = 5'000;  // for what a caller says first
constexpr uint32_t kEnd = 0, kWrite = 1, kRead = 2;

struct Header {
  uint64_t offset = 0;
  uint32_t pieces = 0, kind = kEnd;
  uint64_t most_a_call = 0;
  uint64_t piece = 0, stride = 0;
};

Result<void> wait_for(const Fd& fd, short event, int most_ms = PlainLoop::kSilenceMs) {
  pollfd waited{fd.get(), event, 0};
  if (::poll(&waited, 1, most_ms) == 1) return {};
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
      if (now_ns - since_ns < PlainLoop::kSpinNs) continue;
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
  if (is_within_host(fd)) (void)set_congestion_control(fd, "reno");
  return set_nodelay(fd);
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

Result<std::unique_ptr<PlainLoop>> PlainTcp::open(const Options& options, bool initiator,
                                                  std::span<std::byte> memory, Devices& devices) {
  auto nonce = random_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  Fd listener;
  if (!initiator) {
    auto at = SocketAddress::parse(devices.device(0)->rails().front()->caps().oob_address);
    if (!at) return fail(std::move(at.error()));
    auto made = listen_within(*at, PortRange::of_setting(devices.settings().ports));
    if (!made) return fail(std::move(made.error()));
    listener = std::move(*made);
  }
  return std::unique_ptr<PlainLoop>(
      new PlainTcp(options.operation, std::move(listener), *nonce, memory));
}

json PlainTcp::name() const {
  const auto address = local_address(listener_);
  return {{"transport", "tcp"},
          {"address", address ? address->to_string() : ""},
          {"nonce", tools::to_hex(nonce_)}};
}

Result<void> PlainTcp::connect_to(const json& other) {
  if (listener_) return accept();
  auto target = SocketAddress::parse(other.at("address").get<std::string>());
  if (!target) return fail(std::move(target.error()));
  Nonce nonce;
  if (!tools::from_hex(other.at("nonce").get<std::string>(), nonce)) {
    return fail(Status::kRemote, "the other rank sent a nonce that is not 16 bytes in hexadecimal");
  }
  return dial(*target, nonce);
}

Result<void> PlainTcp::dial(const SocketAddress& target, Nonce nonce) {
  auto fd = start_connect(target);
  if (!fd) return fail(std::move(fd.error()));
  if (!wait_for(*fd, POLLOUT)) {
    return fail(Status::kTimeout, "the plain connection to %s is not there after 60 s",
                target.to_string().c_str());
  }
  Error error;
  if (finish_connect(*fd, target, &error) != Status::kOk) return fail(std::move(error));
  fd_ = std::move(*fd);
  if (auto tuned = tune(fd_); !tuned) return tuned;
  iovec vector{&nonce, sizeof nonce};
  return send_all(fd_, {&vector, 1}, sizeof nonce);
}

// Only the initiator knows the nonce; other callers are dropped.
Result<void> PlainTcp::accept() {
  for (;;) {
    if (!wait_for(listener_, POLLIN)) {
      return fail(Status::kTimeout, "the plain connection has not come within 60 s");
    }
    Accepted accepted;
    Error error;
    const Status status = accept_one(listener_, &accepted, &error);
    if (status == Status::kAgain) continue;
    if (status != Status::kOk) return fail(std::move(error));
    Nonce named;
    iovec vector{&named, sizeof named};
    if (!wait_for(accepted.fd, POLLIN, kNonceMs)) continue;
    if (!receive_all(accepted.fd, {&vector, 1}, sizeof named)) continue;
    if (!same_nonce(named, nonce_)) continue;
    fd_ = std::move(accepted.fd);
    return tune(fd_);
  }
}

std::span<const uint64_t> PlainTcp::ways() const { return kWays; }

Requests PlainTcp::requests(const Layout& layout, uint64_t most_a_call) {
  const Operation operation = operation_;
  const auto begin = [this, layout, operation, most_a_call](uint32_t slot) -> Result<void> {
    Header header = header_of(layout, slot, operation, most_a_call);
    std::vector<iovec> vectors = {{&header, sizeof header}};
    if (operation != Operation::kRead) add_pieces(header, memory_.data(), &vectors);
    return send_all(fd_, vectors, most_a_call);
  };
  const auto wait = [this, layout, operation, most_a_call](uint32_t slot) -> Result<void> {
    uint64_t answer = 0;
    std::vector<iovec> vectors = {{&answer, sizeof answer}};
    if (operation == Operation::kRead) {
      vectors.clear();
      add_pieces(header_of(layout, slot, operation, most_a_call), memory_.data(), &vectors);
    }
    return receive_all(fd_, vectors, most_a_call);
  };
  return {begin, wait};
}

Result<void> PlainTcp::end() {
  Header header;
  iovec vector{&header, sizeof header};
  return send_all(fd_, {&vector, 1}, sizeof header);
}

// The headers say all.
Result<void> PlainTcp::serve() {
  for (;;) {
    Header header;
    iovec vector{&header, sizeof header};
    if (auto got = receive_all(fd_, {&vector, 1}, sizeof header); !got) return got;
    if (header.kind == kEnd) return {};
    if (!fits(header, memory_.size())) return fail(Status::kRemote, "the plain loop got no header");
    std::vector<iovec> vectors;
    add_pieces(header, memory_.data(), &vectors);
    if (header.kind == kWrite) {
      if (auto got = receive_all(fd_, vectors, header.most_a_call); !got) return got;
      vectors = {{&header, sizeof(uint64_t)}};
    }
    if (auto sent = send_all(fd_, vectors, header.most_a_call); !sent) return sent;
  }
}

}  // namespace slime::perf::p2p
