// bench-udp: a bare ping-pong of datagrams between two processes, to compare round trips with.
//
//   bench-udp serve HOST:PORT             sends back what comes, until it is ended
//   bench-udp ask HOST:PORT BYTES COUNT   prints best and median of so many, as JSON
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "base/net/socket.h"
#include "bench/common/statistics.h"

namespace slime::bench {
namespace {

constexpr size_t kMostBytes = 65507;
constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};

int usage() {
  std::fputs("usage: bench-udp serve HOST:PORT | bench-udp ask HOST:PORT BYTES COUNT\n", stderr);
  return 2;
}

int failed(const char* what) {
  std::fprintf(stderr, "bench-udp: %s: %s\n", what, std::strerror(errno));
  return 1;
}

int serve(const Fd& fd, const SocketAddress& address) {
  if (::bind(fd.get(), address.data(), address.size()) != 0) return failed("bind");
  std::vector<std::byte> bytes(kMostBytes);
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    auto* const name = reinterpret_cast<sockaddr*>(&from);
    const ssize_t got = ::recvfrom(fd.get(), bytes.data(), bytes.size(), 0, name, &size);
    if (got < 0) return failed("recvfrom");
    if (::sendto(fd.get(), bytes.data(), static_cast<size_t>(got), 0, name, size) < 0) {
      return failed("sendto");
    }
  }
}

int ask(const Fd& fd, const SocketAddress& address, size_t bytes, size_t count) {
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) != 0 ||
      ::connect(fd.get(), address.data(), address.size()) != 0) {
    return failed("connect");
  }
  std::vector<std::byte> packet(bytes);
  Samples samples;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t began_ns = SteadyClock::instance().now_ns();
    if (::send(fd.get(), packet.data(), bytes, 0) < 0) return failed("send");
    if (::recv(fd.get(), packet.data(), bytes, 0) < 0) return failed("no answer within a second");
    samples.add(static_cast<double>(SteadyClock::instance().now_ns() - began_ns) / 1e3);
  }
  const nlohmann::json result = {{"best_us", samples.min()}, {"median_us", samples.median()}};
  std::puts(result.dump().c_str());
  return 0;
}

int parse_and_run(int argc, char** argv) {
  if (argc < 3) return usage();
  const auto address = SocketAddress::parse(argv[2]);
  if (!address || address->port() == 0) return usage();
  const Fd fd(::socket(address->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return failed("socket");
  if (std::strcmp(argv[1], "serve") == 0 && argc == 3) return serve(fd, *address);
  if (std::strcmp(argv[1], "ask") != 0 || argc != 5) return usage();
  const size_t bytes = std::strtoul(argv[3], nullptr, 10);
  const size_t count = std::strtoul(argv[4], nullptr, 10);
  if (bytes == 0 || bytes > kMostBytes || count == 0) return usage();
  return ask(fd, *address, bytes, count);
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) { return slime::bench::parse_and_run(argc, argv); }
