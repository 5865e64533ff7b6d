#include "bench/engine/threads.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>

#include "bench/engine/loads.h"

namespace slime::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kStripes = 64;
constexpr uint32_t kManyThreads = 8;
constexpr int kPieces = 100;  // between two looks at the processor time, which is a system call

uint64_t thread_cpu_ns() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// What one thread saw.
struct Share {
  Samples sender, receiver, cpu;
  double works_per_s = 0;
};

void run_pieces(Load& load, Share* share) {
  const uint64_t started = thread_cpu_ns();
  for (int i = 0; i < kPieces; ++i) {
    const Cost cost = load.run_piece();
    share->sender.add(cost.sender);
    share->receiver.add(cost.receiver);
  }
  share->cpu.add(static_cast<double>(thread_cpu_ns() - started) / kPieces / kPieceWorks);
}

// The load is made by the thread that runs it: comms belong to the thread that calls them.
void run_thread(std::latch& ready, double seconds, Share* share) {
  const std::unique_ptr<Load> load = make_message_load(kRailsPerThread, kStripes);
  Share warm_up;
  run_pieces(*load, &warm_up);
  ready.arrive_and_wait();
  const auto started = Clock::now();
  std::chrono::duration<double> ran{};
  while (ran.count() < seconds) {
    run_pieces(*load, share);
    ran = Clock::now() - started;
  }
  const auto works = static_cast<double>(share->sender.count()) * kPieceWorks;
  share->works_per_s = works / ran.count();
}

}  // namespace

unsigned core_count() { return std::max(std::thread::hardware_concurrency(), 1u); }

std::vector<ThreadsRow> make_threads_rows() {
  std::vector<ThreadsRow> rows;
  rows.emplace_back(1);
  if (core_count() > 1 && core_count() < kManyThreads) rows.emplace_back(core_count());
  rows.emplace_back(kManyThreads);
  return rows;
}

void run_threads(ThreadsRow* row, double seconds) {
  std::vector<Share> shares(row->threads);
  std::latch ready(row->threads);
  std::vector<std::thread> threads;
  for (Share& share : shares) {
    threads.emplace_back([&ready, seconds, &share] { run_thread(ready, seconds, &share); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Share& share : shares) {
    row->sender.add(share.sender);
    row->receiver.add(share.receiver);
    row->cpu.add(share.cpu);
    row->works_per_s += share.works_per_s;
  }
}

}  // namespace slime::bench
