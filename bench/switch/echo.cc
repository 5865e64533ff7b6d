#include "bench/switch/echo.h"

#include <pthread.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/clock.h"
#include "switch/softswitch/udp_socket.h"

namespace slime::bench {
namespace {

constexpr uint32_t kBatch = 64;
constexpr uint64_t kIdleUs = 50'000;

struct Buffers {
  explicit Buffers(uint32_t packet_bytes) : stride((packet_bytes + 63) / 64 * 64) {
    memory.resize(kBatch * stride);
    for (uint32_t i = 0; i < kBatch; ++i) {
      messages[i].msg_hdr.msg_name = &names[i];
      messages[i].msg_hdr.msg_iov = &places[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
  }
  void reset(uint32_t packet_bytes) {
    for (uint32_t i = 0; i < kBatch; ++i) {
      places[i] = {.iov_base = &memory[i * stride], .iov_len = packet_bytes};
      messages[i].msg_hdr.msg_namelen = sizeof(sockaddr_in6);
    }
  }

  size_t stride;
  std::vector<std::byte> memory;
  std::array<sockaddr_in6, kBatch> names{};
  std::array<iovec, kBatch> places{};
  std::array<mmsghdr, kBatch> messages{};
};

int receive(int fd, Buffers& buffers, uint32_t busy_poll_us) {
  const auto now_ns = [] { return SteadyClock::instance().now_ns(); };
  if (busy_poll_us > 0) {
    const uint64_t end_ns = now_ns() + uint64_t{busy_poll_us} * 1000;
    do {
      const int count = recvmmsg(fd, buffers.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
      if (count > 0) return count;
    } while (now_ns() < end_ns);
  }
  return recvmmsg(fd, buffers.messages.data(), kBatch, MSG_WAITFORONE, nullptr);
}

void send_back(int fd, Buffers& buffers, int count) {
  for (int i = 0; i < count; ++i) buffers.places[i].iov_len = buffers.messages[i].msg_len;
  for (int done = 0; done < count;) {
    const int sent = sendmmsg(fd, &buffers.messages[done], count - done, MSG_DONTWAIT);
    done += sent > 0 ? sent : 1;
  }
}

}  // namespace

std::unique_ptr<Echo> Echo::start(const SocketAddress& address, uint32_t packet_bytes,
                                  uint64_t buffer_bytes, uint32_t busy_poll_us) {
  auto sockets = net::bind_udp_block(address, 1, buffer_bytes, kIdleUs);
  if (!sockets) {
    std::fprintf(stderr, "bench-switch: %s\n", sockets.error().what.c_str());
    return nullptr;
  }
  const auto local = local_address(sockets->front());
  if (!local) return nullptr;
  std::unique_ptr<Echo> echo(new Echo(std::move(sockets->front()), *local));
  echo->thread_ = std::thread(
      [raw = echo.get(), packet_bytes, busy_poll_us] { raw->loop(packet_bytes, busy_poll_us); });
  return echo;
}

Echo::~Echo() {
  stop_.store(true);
  thread_.join();
}

void Echo::loop(uint32_t packet_bytes, uint32_t busy_poll_us) {
  Buffers buffers(packet_bytes);
  while (!stop_.load(std::memory_order_relaxed)) {
    buffers.reset(packet_bytes);
    const int count = receive(socket_.get(), buffers, busy_poll_us);
    if (count <= 0) continue;
    send_back(socket_.get(), buffers, count);
    packets_.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed);
    batches_.fetch_add(1, std::memory_order_relaxed);
  }
}

uint64_t Echo::cpu_ns() {
  clockid_t clock;
  timespec used{};
  if (pthread_getcpuclockid(thread_.native_handle(), &clock) != 0) return 0;
  if (clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace slime::bench
