// One shard with its socket and its thread: receive a batch, handle it, send the answers, again.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "base/machine/cpu_set.h"
#include "switch/core/shard.h"
#include "switch/softswitch/receive_batch.h"
#include "switch/softswitch/send_batch.h"

namespace slime::net {

struct ShardThreadOptions {
  uint32_t index = 0;  // of `count` shards
  uint32_t count = 1;
  uint32_t max_lanes = 0;
  uint32_t busy_poll_us = 0;
  bool segmentation = true;
  CpuSet near = {};  // the CPUs near its NIC; empty: not known
};

// States: running from start() until begin_stop() or the destructor. Between two batches the thread
// looks for a command, which is absent, posted (command_ is set) or running_.
// Invariants: at most one command at a time. One that has not begun within its deadline is
// withdrawn. One that has begun is waited for, because it uses memory of the caller.
// Thread rules: all public functions are for the controller's thread; any thread may read counters.
// The shard's thread runs on the CPUs near its NIC, as far as the process may run there.
class ShardThread {
 public:
  // An idle thread looks for commands this often, in case a wake-up was lost.
  static constexpr uint64_t kIdleUs = 200'000;

  // `socket` blocks, for at most kIdleUs.
  static Result<std::unique_ptr<ShardThread>> start(Fd socket, const ShardThreadOptions& options);
  ~ShardThread();
  ShardThread(const ShardThread&) = delete;
  ShardThread& operator=(const ShardThread&) = delete;

  // Runs on the shard's thread, between two batches, and returns after that. kTimeout: the thread
  // did not come to it within the deadline, and it will not be run.
  Result<void> call(const std::function<void(Shard&)>& command);
  void begin_stop();  // the destructor waits for the end

  // Functions that do not change the shard need no call(): only commands change its set of jobs.
  const Shard& shard() const { return shard_; }
  const IoCounters& io() const { return io_; }
  uint64_t cpu_ns() const;  // that the thread has used

 private:
  ShardThread(Fd socket, const SocketAddress& address, const ShardThreadOptions& options);
  static void* run(void* self);
  Result<void> launch();
  void loop();
  int receive();
  void handle_batch(uint32_t count);
  void handle(uint32_t index, uint64_t now_ns);
  void run_command();
  void wake();

  const Fd socket_;
  const SocketAddress address_;
  const ShardThreadOptions options_;
  IoCounters io_;
  Shard shard_;
  ReceiveBatch in_;
  SendBatch out_;
  pthread_t thread_{};
  bool started_ = false;

  std::atomic<bool> stop_{false};
  std::atomic<bool> called_{false};  // there may be a command
  std::mutex mutex_;                 // of what follows; the data path takes it for commands only
  std::condition_variable changed_;
  const std::function<void(Shard&)>* command_ = nullptr;
  bool running_ = false;
};

}  // namespace slime::net
