// A rank's connection to the coordinator: exchanges, heartbeats, and the verdict when the run has
// failed anywhere.
//
// States: joined -> (exchanges) -> failed, once there is a verdict, or leaving. Invariant: a
// verdict is final, and the first one counts. Threads: after join() one of its own keeps the
// connection alive while the rank computes; the mutex guards what both use, the atomics may be read
// by any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/coordinator.h"

namespace slime::rendezvous {

// The content of a rank's heartbeat, once a second: a count that grows while the rank moves, and
// what it is doing. Threads: any.
class Heartbeat {
 public:
  // Anything that shows that the rank moves: messages, blocks of a check. A lost count is harmless,
  // so this is no locked instruction.
  void beat() { count_.store(count() + 1, std::memory_order_relaxed); }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // What the rank is doing, for messages to people.
  void enter(std::string what) {
    beat();
    const std::lock_guard lock(mutex_);
    where_ = std::move(what);
  }
  std::string where() const {
    const std::lock_guard lock(mutex_);
    return where_;
  }

 private:
  std::atomic<uint64_t> count_{0};
  mutable std::mutex mutex_;
  std::string where_ = "starting";
};

struct RankInfo {
  std::string host;
  int64_t pid = 0;
};

class Member {
 public:
  // Waits for all ranks. `tick` is called about four times a second, from the member's thread.
  static Result<std::unique_ptr<Member>> join(const Identity& identity, const Agreement& agreement,
                                              double timeout_s, Heartbeat* heartbeat,
                                              std::function<void()> tick);
  ~Member();

  const std::vector<RankInfo>& ranks() const { return ranks_; }

  // Every rank calls this in the same order with the same label; returns the parts of all.
  Result<std::vector<nlohmann::json>> exchange(const char* label, nlohmann::json part);

  // The run has failed somewhere.
  const std::atomic<bool>& failed() const { return failed_; }
  // Leave the plugin alone now: set with failed(), or somewhat later when a rank has died.
  const std::atomic<bool>& stop() const { return stop_; }
  // Reports to the coordinator that this rank cannot go on. Returns the verdict, which may name
  // another rank as the one that failed.
  Error fail_run(const Error& error);
  Error verdict() const;
  // The verdict is a failure that a rank has reported about itself. Rank 0 prints it.
  bool was_reported() const { return reported_; }
  void leave();

 private:
  Member(Fd fd, std::vector<RankInfo> ranks, double timeout_s, Heartbeat* heartbeat,
         std::function<void()> tick);
  void run();
  void serve();
  void handle(const Frame& frame);
  void set_verdict(const std::string& text, bool usage = false, int grace_s = 0);
  void wake();

  Heartbeat* const heartbeat_;
  const std::function<void()> tick_;
  const uint64_t timeout_ns_;
  Fd wake_;
  const std::vector<RankInfo> ranks_;
  std::atomic<bool> failed_{false}, stop_{false}, reported_{false};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Connection connection_;
  bool leaving_ = false;
  uint64_t exchange_ = 0;
  bool has_whole_ = false;
  std::vector<nlohmann::json> whole_;
  Error verdict_;
  uint64_t stop_ns_ = UINT64_MAX;  // when stop_ is to be set
  uint64_t heard_ns_ = 0, beat_ns_ = 0;
  std::thread thread_;
};

}  // namespace slime::rendezvous
