#include "bench/stream/exchange.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "bench/common/two_processes.h"

namespace slime::bench {
namespace {

constexpr unsigned kWarmUp = 2;  // operations
constexpr unsigned kMaxOperations = 400;
constexpr unsigned kLimitS = 60;

struct Shared {
  Barrier barrier;
  std::array<std::array<uint64_t, kMaxOperations + kWarmUp + 1>, 2> ends_ns;
};

// The place of a part of an operation in its buffer.
class Buffer {
 public:
  Buffer(size_t operation_bytes, const Variant& variant)
      : bytes_(variant.walks_memory ? std::max(operation_bytes, variant.io_bytes)
                                    : variant.io_bytes),
        walks_(variant.walks_memory),
        data_(new char[bytes_]) {
    std::memset(data_.get(), 1, bytes_);  // pages must exist before the clock runs
  }
  char* at(size_t offset) const { return data_.get() + (walks_ ? offset : 0); }

 private:
  const size_t bytes_;
  const bool walks_;
  const std::unique_ptr<char[]> data_;
};

// One direction of one operation.
struct Half {
  int fd;
  const Buffer& buffer;
  size_t bytes;
  size_t io_bytes;
  size_t done = 0;

  bool finished() const { return done == bytes; }
  size_t next() const { return std::min(io_bytes, bytes - done); }
  // Bytes moved; 0: not now; -1: the connection failed.
  ssize_t took(ssize_t result) {
    if (result > 0) done += static_cast<size_t>(result);
    if (result > 0) return result;
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
    std::fprintf(stderr, "bench-stream: the connection failed: %s\n",
                 result == 0 ? "closed" : std::strerror(errno));
    return -1;
  }
  ssize_t send_some() { return took(send(fd, buffer.at(done), next(), MSG_NOSIGNAL)); }
  ssize_t receive_some() { return took(recv(fd, buffer.at(done), next(), 0)); }
};

bool move_both(Half out, Half in) {
  while (!out.finished() || !in.finished()) {
    const ssize_t sent = out.finished() ? 0 : out.send_some();
    const ssize_t received = in.finished() ? 0 : in.receive_some();
    if (sent < 0 || received < 0) return false;
    if (sent == 0 && received == 0) sched_yield();  // as slime-perf's progress thread does
  }
  return true;
}

// A thread that sends an operation each time it is told to.
class Sender {
 public:
  Sender(const Half& half) : half_(half), thread_([this] { run(); }) {}
  ~Sender() {
    stop_ = true;
    wanted_.fetch_add(1);
    wanted_.notify_one();
    thread_.join();
  }
  void start() {
    wanted_.fetch_add(1);
    wanted_.notify_one();
  }
  bool finish() {
    done_.wait(wanted_ - 1);
    return !failed_;
  }

 private:
  void run() {
    for (uint32_t operation = 0;; ++operation) {
      wanted_.wait(operation);
      if (stop_) return;
      Half half = half_;
      while (!failed_ && !half.finished()) failed_ = half.send_some() < 0;
      done_.fetch_add(1);
      done_.notify_one();
    }
  }

  const Half half_;
  std::atomic<uint32_t> wanted_{0}, done_{0};
  std::atomic<bool> stop_{false}, failed_{false};
  std::thread thread_;
};

struct Side {
  int out, in;
  const Variant& variant;
  size_t bytes;
  unsigned operations;
};

bool run_one_thread(const Side& side, Shared* shared, uint64_t* ends_ns) {
  const Buffer outgoing(side.bytes, side.variant), incoming(side.bytes, side.variant);
  const Half out{side.out, outgoing, side.bytes, side.variant.io_bytes};
  const Half in{side.in, incoming, side.bytes, side.variant.io_bytes};
  set_blocking(side.out, false);
  set_blocking(side.in, false);
  shared->barrier.wait();
  ends_ns[0] = SteadyClock::instance().now_ns();
  for (unsigned i = 1; i <= side.operations; ++i) {
    if (!move_both(out, in)) return false;
    ends_ns[i] = SteadyClock::instance().now_ns();
  }
  return true;
}

bool run_two_threads(const Side& side, Shared* shared, uint64_t* ends_ns) {
  const Buffer outgoing(side.bytes, side.variant), incoming(side.bytes, side.variant);
  Sender sender(Half{side.out, outgoing, side.bytes, side.variant.io_bytes});
  shared->barrier.wait();
  ends_ns[0] = SteadyClock::instance().now_ns();
  for (unsigned i = 1; i <= side.operations; ++i) {
    sender.start();
    Half in{side.in, incoming, side.bytes, side.variant.io_bytes};
    while (!in.finished()) {
      if (in.receive_some() < 0) return false;
    }
    if (!sender.finish()) return false;
    ends_ns[i] = SteadyClock::instance().now_ns();
  }
  return true;
}

}  // namespace

std::string Variant::name() const {
  return std::to_string(threads) + (threads == 1 ? " thread, " : " threads, ") +
         std::to_string(sockets) + (sockets == 1 ? " socket, " : " sockets, ") +
         std::to_string(io_bytes >> 10) + " KiB" + (walks_memory ? ", walks memory" : "");
}

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const unsigned threads : {1u, 2u}) {
    for (const unsigned sockets : {1u, 2u}) {
      for (const size_t io_bytes : {64u << 10, 256u << 10, 1024u << 10}) {
        variants.push_back({threads, sockets, io_bytes, false});
      }
      variants.push_back({threads, sockets, 256u << 10, true});
    }
  }
  return variants;
}

Exchange run_exchange(const Variant& variant, size_t bytes, unsigned operations) {
  operations = std::min(operations, kMaxOperations);
  auto* shared = make_shared_memory<Shared>();
  if (shared == nullptr) return {};
  const SocketPair first = make_loopback_pair();
  const SocketPair second = variant.sockets == 2 ? make_loopback_pair() : first;
  Exchange exchange;
  exchange.ok = run_two_processes(kLimitS, [&](int self) {
    const auto mine = static_cast<size_t>(self);
    const Side side{self == 0 ? first.ends[0] : second.ends[1],
                    self == 0 ? second.ends[0] : first.ends[1], variant, bytes,
                    operations + kWarmUp};
    auto* ends_ns = shared->ends_ns[mine].data();
    return variant.threads == 1 ? run_one_thread(side, shared, ends_ns)
                                : run_two_threads(side, shared, ends_ns);
  });
  for (unsigned i = kWarmUp + 1; exchange.ok && i <= operations + kWarmUp; ++i) {
    uint64_t slowest_ns = 0;
    for (const auto& ends_ns : shared->ends_ns) {
      slowest_ns = std::max(slowest_ns, ends_ns[i] - ends_ns[i - 1]);
    }
    exchange.seconds.push_back(static_cast<double>(slowest_ns) / 1e9);
  }
  for (const int end : first.ends) close(end);
  for (const int end : second.ends) {
    if (variant.sockets == 2) close(end);
  }
  munmap(shared, sizeof(Shared));
  return exchange;
}

}  // namespace slime::bench
