// The posting queue of one rail: works wait here, and leave in batches, one doorbell for each.
//
// Two rules make posting cheap on a busy rail. Credits: post is never called without a free place
// in the send queue, so no call is futile. Watermark: while more than `low` works are in flight,
// nothing is posted until a batch is worth a doorbell. If credits are missing, the queue waits for
// `watermark` of them. If only works are missing, it waits `flush_ns` at most. With few works in
// flight it posts at once, so the first work on an idle rail never waits.
//
// States of a work: queued (push), in flight (flush), gone (complete, or clear for all). Positions
// count up from head_ to tail_; the ring's index is the position modulo its size, which may grow up
// to kCapacity. Invariant: queued() <= size <= kCapacity and in_flight() <= depth. Thread: that of
// the link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/check.h"
#include "transports/channel_common.h"

namespace slime {

struct PostPolicy {
  uint32_t depth = 256;      // credits: works in flight at most
  uint32_t max_batch = 64;   // works per doorbell at most
  uint32_t watermark = 16;   // works that make a busy rail worth a doorbell
  uint64_t flush_ns = 1000;  // a short queue is held back this long at most
  bool grows = false;        // memory is taken as works wait, and not for all at first
};

class PostQueue {
 public:
  static constexpr uint32_t kCapacity = 512;  // works that may wait
  static constexpr uint32_t kFirstPlaces = 64;

  explicit PostQueue(const PostPolicy& policy)
      : policy_(policy),
        low_(policy.depth / 2),
        mask_((policy.grows ? kFirstPlaces : kCapacity) - 1),
        works_(new Work[mask_ + 1]) {}

  // Adapts a policy to the rail, and to ChannelOptions::depth: a watermark above the batch size or
  // the depth would never be reached.
  static PostPolicy fit(PostPolicy policy, const RailCaps& caps, uint32_t depth) {
    const auto at_least_one = [](uint32_t n) { return n ? n : 1; };
    policy.depth = at_least_one(ChannelDepth(caps, depth).writes);
    policy.grows = depth > 0;
    policy.max_batch = at_least_one(std::min(policy.max_batch, caps.max_batch));
    policy.watermark = std::min({policy.watermark, policy.max_batch, policy.depth / 2 + 1});
    return policy;
  }

  uint32_t queued() const { return tail_ - head_; }
  uint32_t room() const { return kCapacity - queued(); }
  uint32_t in_flight() const { return in_flight_; }
  uint64_t outstanding_bytes() const { return outstanding_bytes_; }

  // The caller has checked room(). The members are copied one by one, as the caller has just stored
  // them: a copy of the whole, with wider loads, would wait until those stores are done.
  void push(const Work& work, uint64_t cookie) {
    SLIME_CHECK(room() > 0);
    static_assert(sizeof(Work) == 8 * sizeof(uint64_t), "copy each member");
    if (queued() > mask_) grow();
    Work& place = works_[tail_++ & mask_];
    place.local = work.local;
    place.local_key = work.local_key;
    place.remote_address = work.remote_address;
    place.remote_offset = work.remote_offset;
    place.remote_key = work.remote_key;
    place.length = work.length;
    place.immediate = work.immediate;
    place.cookie = cookie;
    place.unconfirmed = work.unconfirmed;
    place.opcode = work.opcode;
    outstanding_bytes_ += work.length;
  }

  // A work of `bytes` is done: its credit comes back.
  void complete(uint64_t bytes) {
    SLIME_CHECK(in_flight_ > 0 && outstanding_bytes_ >= bytes);
    --in_flight_;
    outstanding_bytes_ -= bytes;
  }

  void clear() {
    head_ = tail_;
    in_flight_ = 0;
    outstanding_bytes_ = 0;
  }

  // Posts as many works as the rules allow, with one doorbell at most.
  Status flush(Channel& channel, uint64_t now_ns) {
    const uint32_t batch = batch_size();
    if (batch == 0) {
      waiting_ = waiting_ && queued() > 0;
      return Status::kOk;
    }
    if (hold_back(now_ns)) {
      channel.counters.deferred.add();
      return Status::kOk;
    }
    return post(channel, batch);
  }

 private:
  // Rare: it must not keep push() from being inlined.
  [[gnu::noinline, gnu::cold]] void grow() {
    const uint32_t queued = tail_ - head_;
    std::unique_ptr<Work[]> larger(new Work[2 * queued]);
    for (uint32_t i = 0; i < queued; ++i) larger[i] = works_[(head_ + i) & mask_];
    works_ = std::move(larger);
    mask_ = 2 * queued - 1;
    head_ = 0;
    tail_ = queued;
  }

  uint32_t batch_size() const {
    uint32_t batch = queued();
    const uint32_t credits = policy_.depth - in_flight_;
    if (batch > credits) batch = credits;
    if (batch > policy_.max_batch) batch = policy_.max_batch;
    const uint32_t until_wrap = mask_ + 1 - (head_ & mask_);
    return batch < until_wrap ? batch : until_wrap;
  }

  bool hold_back(uint64_t now_ns) {
    if (in_flight_ <= low_) return false;
    // Too few credits: completions are on their way, and each brings one.
    if (policy_.depth - in_flight_ < policy_.watermark) return true;
    if (queued() >= policy_.watermark) return false;
    if (!waiting_) {
      waiting_ = true;
      waiting_since_ns_ = now_ns;
    }
    return now_ns - waiting_since_ns_ < policy_.flush_ns;
  }

  Status post(Channel& channel, uint32_t batch) {
    channel.counters.queue_depth_max.raise_to(queued());
    waiting_ = false;
    size_t taken = 0;
    const Status status =
        channel.post(std::span<const Work>(&works_[head_ & mask_], batch), &taken);
    if (status != Status::kOk) return status;
    SLIME_CHECK(taken <= batch && in_flight_ + taken <= policy_.depth);
    head_ += static_cast<uint32_t>(taken);
    in_flight_ += static_cast<uint32_t>(taken);
    if (head_ == tail_) head_ = tail_ = 0;  // the next works reuse places that are in the cache
    return Status::kOk;
  }

  const PostPolicy policy_;
  const uint32_t low_;
  uint32_t mask_;
  uint32_t head_ = 0, tail_ = 0;  // positions; the works between them wait
  uint32_t in_flight_ = 0;
  bool waiting_ = false;
  uint64_t waiting_since_ns_ = 0;
  uint64_t outstanding_bytes_ = 0;  // waiting or in flight
  std::unique_ptr<Work[]> works_;
};

}  // namespace slime
