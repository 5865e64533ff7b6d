// The reads that a flusher has begun: where, and which are complete. The backend posts them.
//
// States of a read
//   kWaiting   to be posted, for the first time or again
//   kPosted    the NIC has it
//   kDone      complete, or its memory was deregistered meanwhile, so its result does not matter
//
// Invariant: completed <= begun <= completed + kMost. Reads complete in any order, and are counted
// in the order of their beginning.
//
// Threads: that of its flusher.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transports/region_table.h"

namespace slime {

class FlushReads {
 public:
  static constexpr size_t kMost = 16;

  struct Read {
    enum class State : uint8_t { kWaiting, kPosted, kDone };
    State state = State::kDone;
    const std::byte* address = nullptr;
    uint64_t offset = 0;
    MemoryKeys keys;
  };

  explicit FlushReads(const RegionTable& regions) : regions_(regions) {}

  uint64_t begun() const { return begun_; }
  uint64_t completed() const { return completed_; }
  uint64_t open() const { return begun_ - completed_; }

  // An error where the byte is not registered with these keys. At most kMost are open.
  Result<void> begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys);

  // Calls post(number, read) for those that wait, the oldest first, until it returns false.
  template <typename Post>
  void post_waiting(Post post) {
    for (uint64_t number = completed_; number != begun_; ++number) {
      Read& next = read(number);
      if (next.state != Read::State::kWaiting) continue;
      if (!is_registered(next)) {
        next.state = Read::State::kDone;
        continue;
      }
      if (!post(number, next)) break;
      next.state = Read::State::kPosted;
    }
    count_completed();
  }
  void complete(uint64_t number);
  // One that has failed waits. False: its memory was deregistered, so it is done instead.
  bool wait_again(uint64_t number);
  void all_wait_again();  // those that the NIC has

  Read& read(uint64_t number) { return reads_[number % kMost]; }

 private:
  bool is_registered(const Read& read) const;
  void count_completed();

  const RegionTable& regions_;
  std::array<Read, kMost> reads_;
  uint64_t begun_ = 0, completed_ = 0;
};

// What the flushers of all NICs have in common. A backend posts each read and takes completions.
//
// States: it works, until fail_with() was called; then it has failed for good.
// Threads: one at a time.
class ReadFlusher : public Flusher {
 public:
  ReadFlusher(const RailCaps& rail, const RegionTable& regions)
      : rail_caps_(rail), reads_(regions) {}

  Status begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) final;
  Status poll(uint64_t* completed) final;
  const Error& failure() const final { return failure_; }

 protected:
  // A read was added to reads_; `first`: no other is under way.
  virtual void begun(bool first) = 0;
  // Takes completions, and posts what waits. Called while the flusher has not failed.
  virtual void progress() = 0;
  // Gives a read to the NIC. False: not now, or the flusher has failed.
  virtual bool post(uint64_t number, const FlushReads::Read& read) = 0;

  void post_waiting() {
    reads_.post_waiting(
        [this](uint64_t number, const FlushReads::Read& read) { return post(number, read); });
  }
  bool failed() const { return failed_; }
  void fail_with(Error error);
  Error prefixed(Error error) const;  // begins with the rail

  const RailCaps& rail_caps_;
  FlushReads reads_;
  uint64_t room_ = FlushReads::kMost;  // reads that may be under way

 private:
  bool failed_ = false;
  Error failure_;
};

}  // namespace slime
