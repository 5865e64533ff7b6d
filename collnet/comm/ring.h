// The members of a CollNet communicator in a ring of engine links: how they agree before there is a
// switch, and when they leave it or go back. connect() and all_gather() wait, with a deadline; the
// rest never waits.
//
// A gather takes size - 1 steps. In step s each member sends what it got in step s - 1, its own
// blob first, to the next one, and gets one from the member before it.
//
// States: idle, or a gather is under way (begin_gather() to the step() that is not kAgain). One
// gather at a time; its blobs stay the caller's, and where they are, until it has ended.
//
// Thread rules: one thread, the communicator's.
#pragma once

#include <sched.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "message/comm.h"

namespace slime {

// Calls step(now_ns) until it returns true. False: not in time, by the rule of base/deadline.h.
// step() may restart the deadline.
template <typename Step>
bool step_until(const Clock& clock, const Deadline& deadline, Step step) {
  for (;;) {
    const Deadline::Look look(deadline);
    if (step(clock.now_ns())) return true;
    if (look.expired()) return false;
    sched_yield();
  }
}

class Ring {
 public:
  // Each member calls it, with the handles of all in the order of ranks; `listener` made ours.
  static Result<std::unique_ptr<Ring>> connect(Devices& devices, int device, Listener& listener,
                                               std::span<const Handle> handles, uint32_t rank,
                                               const Deadline& deadline,
                                               const CommOptions& options);
  ~Ring();

  // Of a gather: members that mean different things must not take each other's blobs.
  enum class Topic : int { kSetUp, kLeave, kMove };

  using Meanwhile = std::function<void(uint64_t now_ns)>;
  // `all`: a blob of `bytes` per member; the own one is filled in. Afterwards all are. `meanwhile`
  // is called while this waits.
  Result<void> all_gather(std::span<std::byte> all, size_t bytes, const Deadline& deadline,
                          const Meanwhile& meanwhile = nullptr);
  // The same without waiting: begin, then step until it is not kAgain. `all` stays where it is.
  Result<void> begin_gather(std::span<std::byte> all, size_t bytes, Topic topic);
  Status step(Error* error);
  // The member before this one has begun a gather of this topic.
  bool invited(Topic topic) const;

  // Whether both neighbours are still there. Never waits.
  Result<void> check();

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }

 private:
  Ring(Devices& devices, Device& device, uint32_t rank, uint32_t size)
      : devices_(devices), device_(device), rank_(rank), size_(size) {}
  Result<void> open_step(Listener& listener, Connector& connector);
  Status exchange(Error* error);
  std::span<std::byte> blob(uint32_t back) const;
  Error late(const char* what) const;

  Devices& devices_;
  Device& device_;
  const uint32_t rank_, size_;
  std::unique_ptr<SendComm> next_;
  std::unique_ptr<RecvComm> previous_;

  // The gather under way.
  std::span<std::byte> all_;
  size_t bytes_ = 0;
  Topic topic_ = Topic::kSetUp;
  uint32_t step_ = 0;
  Request* sending_ = nullptr;
  Request* receiving_ = nullptr;
  bool sent_ = false, received_ = false;
  std::vector<std::byte> buffer_;  // registered: one blob out, one in
  const MemoryRegion* region_ = nullptr;
};

}  // namespace slime
