// bench-peer [ROW...]: what libslime costs beside its transfers, between two processes of this
// host:
//   connect    from slime_add_peer() until 8 bytes were read, and a plain TCP connection beside it
//   register   1 GiB
//   idle       an engine with 1,000 connected peers: processor, memory and descriptors; the other
//              process needs some 8,000 of these (`ulimit -n`)
//   threads    4 threads that write 4 KiB to one peer, and to one each, by turns with one thread
//   p99        reads of 8 bytes, alone and beside 64 MiB both ways
//   unfetched  60 s in which a program fetches no notification, and all else goes on
//   cancel     64 MiB that are given up while they move; for a slow network, as after
//              "tc qdisc add dev lo root tbf rate 10mbit burst 64k latency 50ms" in a namespace
// The settings are those of docs/configuration.md.
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "bench/common/statistics.h"
#include "bench/peer/others.h"
#include "bench/peer/rows.h"

namespace slime::bench {
namespace {

using namespace std::chrono_literals;

double processor_seconds() {
  rusage usage;
  (void)::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6));
  }
  return 0;
}

double descriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<double>(std::distance(begin(all), end(all)));
}

// The same over plain sockets: connect, ask, and get 8 bytes.
Samples plain_connects(size_t times) {
  sockaddr_in address = {};
  socklen_t bytes = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  if (::bind(listener.get(), any, bytes) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), any, &bytes) != 0) {
    std::perror("bench-peer: a plain listener");
    return {};
  }
  std::thread answers([&] {
    uint64_t word = 0;
    for (size_t i = 0; i < times; ++i) {
      const Fd caller(::accept(listener.get(), nullptr, nullptr));
      (void)::recv(caller.get(), &word, sizeof word, MSG_WAITALL);
      (void)::send(caller.get(), &word, sizeof word, MSG_NOSIGNAL);
    }
  });
  Samples us;
  for (size_t i = 0; i < times; ++i) {
    uint64_t word = i;
    const uint64_t begin_ns = steady_now_ns();
    const Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
    (void)::connect(fd.get(), any, bytes);
    (void)::send(fd.get(), &word, sizeof word, MSG_NOSIGNAL);
    (void)::recv(fd.get(), &word, sizeof word, MSG_WAITALL);
    us.add(seconds_since(begin_ns) * 1e6);
  }
  answers.join();
  return us;
}

void connect_row() {
  constexpr size_t kTimes = 200;
  const Others others(kTimes, 4096);
  EngineWithMemory here(SLIME_OPTIONS_INIT, 4096);
  Samples us;
  for (const Known& known : others.known) {
    const uint64_t begin_ns = steady_now_ns();
    const Target target(here.engine, known);
    (void)target.peer.read(here.region.to(target.remote, 0, 0, 8)).start().wait();
    us.add(seconds_since(begin_ns) * 1e6);
  }
  std::printf(
      "connect    to the first 8 bytes: median %.0f us, p99 %.0f us, of %zu; plain: %.0f us\n",
      us.median(), us.quantile(0.99), us.count(), plain_connects(kTimes).median());
}

void register_row() {
  constexpr size_t kBytes = size_t{1} << 30;
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return std::perror("mmap");
  {
    p2p::Engine engine;
    const uint64_t begin_ns = steady_now_ns();
    const auto region = engine.register_memory({static_cast<std::byte*>(memory), kBytes});
    std::printf("register   1 GiB: %.6f s\n", seconds_since(begin_ns));
  }
  (void)::munmap(memory, kBytes);
}

void idle_row() {
  constexpr size_t kPeers = 1000;
  const Others others(kPeers, 4096);
  EngineWithMemory here(SLIME_OPTIONS_INIT, 4096);
  std::vector<Target> targets;
  const double kib = resident_kib(), open = descriptors();
  for (const Known& known : others.known) {
    targets.emplace_back(here.engine, known);
    (void)targets.back().peer.read(here.region.to(targets.back().remote, 0, 0, 8)).start().wait();
  }
  const double more_kib = resident_kib() - kib, more_open = descriptors() - open;
  std::this_thread::sleep_for(3s);  // the engine looks at a link for a second after its last work
  const double before = processor_seconds();
  const uint64_t begin_ns = steady_now_ns();
  std::this_thread::sleep_for(10s);
  std::printf(
      "idle       %zu peers: %.3f %% of a processor; %.1f KiB and %.2f descriptors a peer\n",
      kPeers, (processor_seconds() - before) / seconds_since(begin_ns) * 100, more_kib / kPeers,
      more_open / kPeers);
}

// Writes of 4 KiB a second, of all threads, each to its target.
double rate(EngineWithMemory& here, const std::vector<const Target*>& targets) {
  std::atomic<uint64_t> done = 0;
  const uint64_t begin_ns = steady_now_ns(), end_ns = begin_ns + 1'000'000'000;
  const auto write = [&](const Target& target, size_t place) {
    const auto piece = here.region.to(target.remote, place * 4096, place * 4096, 4096);
    for (; steady_now_ns() < end_ns; ++done) (void)target.peer.write(piece).start().wait();
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < targets.size(); ++i)
    threads.emplace_back([&, i] { write(*targets[i], i); });
  for (auto& thread : threads) thread.join();
  return static_cast<double>(done) / seconds_since(begin_ns);
}

void threads_row() {
  const Others others(4, 4 * 4096);
  EngineWithMemory here(SLIME_OPTIONS_INIT, 4 * 4096);
  std::vector<Target> targets;
  for (const Known& known : others.known) targets.emplace_back(here.engine, known);
  Samples alone, one_peer, four_peers;
  for (int turn = 0; turn < 6; ++turn) {
    const double base = rate(here, {&targets[0]});
    const double to_one = rate(here, std::vector<const Target*>(4, &targets[0]));
    const double to_four = rate(here, {&targets[0], &targets[1], &targets[2], &targets[3]});
    if (turn == 0) continue;  // it connects
    alone.add(base);
    one_peer.add(to_one / base);
    four_peers.add(to_four / base);
  }
  std::printf("threads    one: %.0f writes a second; four to one peer %.2f of that, to four %.2f\n",
              alone.median(), one_peer.median(), four_peers.median());
}

void p99_row() {
  const Others others(1, 3 * kLong);
  EngineWithMemory here(SLIME_OPTIONS_INIT, 3 * kLong);
  const Target target(here.engine, others.known[0]);
  std::atomic<bool> ends = false;
  const auto measure = [&](const char* what) {
    Samples us;
    for (const uint64_t begin_ns = steady_now_ns(); seconds_since(begin_ns) < 5;) {
      const uint64_t asked_ns = steady_now_ns();
      (void)target.peer.read(here.region.to(target.remote, 0, 0, 8)).start().wait();
      us.add(seconds_since(asked_ns) * 1e6);
    }
    std::printf("p99        8 bytes %s: median %.0f us, p99 %.0f us, of %zu\n", what, us.median(),
                us.quantile(0.99), us.count());
  };
  measure("alone");
  const auto keep = [&](bool writes) {
    const size_t place = (writes ? 1 : 2) * kLong;
    const auto piece = here.region.to(target.remote, place, place, kLong);
    while (!ends)
      (void)(writes ? target.peer.write(piece) : target.peer.read(piece)).start().wait();
  };
  std::thread writer(keep, true), reader(keep, false);
  measure("beside 64 MiB both ways");
  ends = true;
  writer.join();
  reader.join();
}

void unfetched_row() {
  EngineWithMemory here(SLIME_OPTIONS_INIT, 1 << 20), there(SLIME_OPTIONS_INIT, 1 << 20);
  const Target target(here.engine, there.known());
  uint64_t rounds = 0;
  size_t notified = 0, came = 0;
  for (const uint64_t begin_ns = steady_now_ns(); seconds_since(begin_ns) < 60; ++rounds) {
    if (notified < 4096) {
      (void)target.peer.notify("not fetched").start().wait();
      ++notified;
    }
    const p2p::Remote again = target.peer.import(there.region.advertise());
    (void)target.peer.read(here.region.to(again, 0, 0, 1 << 20)).start().wait();
    (void)target.peer.write(here.region.to(again, 8, 8, 4096)).immediate(7).start().wait();
    (void)there.engine.any_peer().expect(7).start().wait();
    (void)target.peer.signal(again, 0, 1).start().wait();
    auto receive = there.engine.any_peer().receive(there.memory, 1).start();
    (void)target.peer.send(here.memory, 1).start().wait();
    (void)receive.wait();
  }
  while (there.engine.notification()) ++came;
  std::printf("unfetched  %llu rounds in 60 s; %zu of %zu notifications were there at the end\n",
              static_cast<unsigned long long>(rounds), came, notified);
}

struct Row {
  const char* name;
  void (*run)();
};
// Each forks while this process has no threads.
constexpr Row kRows[] = {{"connect", connect_row}, {"register", register_row},
                         {"idle", idle_row},       {"threads", threads_row},
                         {"p99", p99_row},         {"unfetched", unfetched_row},
                         {"cancel", cancel_row}};

int run(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::ranges::any_of(kRows, [&](const Row& row) { return name == row.name; })) continue;
    std::fprintf(stderr, "bench-peer: no row '%s'; usage: bench-peer [ROW...]: ", name.c_str());
    for (const Row& row : kRows) std::fprintf(stderr, "%s ", row.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  for (const Row& row : kRows) {
    if (!names.empty() && std::ranges::find(names, row.name) == names.end()) continue;
    row.run();
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace slime::bench

int main(int argc, char** argv) {
  try {
    return slime::bench::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-peer: %s\n", error.what());
    return 3;
  }
}
