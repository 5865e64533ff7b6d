#include "bench/posting/group.h"

#include <algorithm>

namespace slime::bench {

Group::Group(const Flags& flags, World& world, uint32_t first_nic, uint32_t nics)
    : flags_(flags), world_(world), first_nic_(first_nic), queues_(nics) {
  if (!flags.pool) return;
  for (Queue& queue : queues_) queue.ring.reset(new Work[kRingCapacity]);
}

// Works in flight are waited for: their cookies are what frees them.
Group::~Group() {
  for (uint32_t nic = 0; nic < queues_.size(); ++nic) {
    for (Op* op : queues_[nic].heap) delete op;
    while (queues_[nic].in_flight > 0) {
      world_.network().step();
      poll_once(nic, 64);
    }
  }
}

void Group::turn() {
  for (uint32_t nic = 0; nic < queues_.size(); ++nic) {
    if (!flags_.credits || queues_[nic].in_flight > 0) poll(nic);
    post(nic);
  }
  for (uint32_t i = 0; i < flags_.batch; ++i) {
    if (flags_.cap > 0 && outstanding_ >= flags_.cap) break;
    make_work();
  }
}

bool Group::saturated() const {
  return std::all_of(queues_.begin(), queues_.end(),
                     [](const Queue& queue) { return queue.most_in_flight == kQueueDepth; });
}

uint32_t Group::waiting(const Queue& queue) const {
  return flags_.pool ? queue.tail - queue.head : static_cast<uint32_t>(queue.heap.size());
}

void Group::make_work() {
  const uint32_t nic = next_nic_;
  next_nic_ = (next_nic_ + 1) % static_cast<uint32_t>(queues_.size());
  Queue& queue = queues_[nic];
  world_.network().advance(kGenerateNs);
  if (flags_.pool) {
    queue.ring[queue.tail++ % kRingCapacity] = Work();
  } else {
    Op* op = new Op{Work(), this};
    op->work.cookie = reinterpret_cast<uint64_t>(op);
    queue.heap.push_back(op);
  }
  ++outstanding_;
  depth_max_ = std::max(depth_max_, ++waiting_);
  if (!flags_.lazy) post(nic);
}

// The demo reads 16 completions at a time until there are none. With credits one look is enough:
// what it leaves is found by the next.
void Group::poll(uint32_t nic) {
  if (flags_.credits) {
    poll_once(nic, 64);
  } else {
    while (poll_once(nic, 16) > 0) continue;
  }
}

size_t Group::poll_once(uint32_t nic, size_t most) {
  std::array<Done, 64> done;
  size_t count = 0;
  Channel& channel = *world_.nic(first_nic_ + nic).channel;
  if (channel.poll(std::span(done).first(most), &count) != Status::kOk)
    test::give_up(channel.failure());
  for (size_t i = 0; i < count && !flags_.pool; ++i) delete reinterpret_cast<Op*>(done[i].cookie);
  queues_[nic].in_flight -= static_cast<uint32_t>(count);
  outstanding_ -= count;
  completed_ += count;
  return count;
}

void Group::post(uint32_t nic) {
  Queue& queue = queues_[nic];
  while (waiting(queue) > 0) {
    const uint32_t until_wrap = kRingCapacity - queue.head % kRingCapacity;
    uint32_t most = flags_.chain ? std::min({waiting(queue), kMaxBatch, until_wrap}) : 1;
    if (flags_.credits) {
      most = std::min(most, kQueueDepth - queue.in_flight);
      if (most == 0 || hold_back(queue)) return;
    }
    if (post_some(nic, most) < most) return;  // the NIC's queue is full
  }
}

// While the NIC has plenty to do, wait for places that are worth a doorbell.
bool Group::hold_back(const Queue& queue) const {
  return queue.in_flight > kQueueDepth / 2 && kQueueDepth - queue.in_flight < flags_.watermark;
}

uint32_t Group::post_some(uint32_t nic, uint32_t most) {
  Queue& queue = queues_[nic];
  const Work* first =
      flags_.pool ? &queue.ring[queue.head % kRingCapacity] : &queue.heap.front()->work;
  size_t taken = 0;
  Channel& channel = *world_.nic(first_nic_ + nic).channel;
  if (channel.post({first, most}, &taken) != Status::kOk) test::give_up(channel.failure());
  if (flags_.pool) {
    queue.head += static_cast<uint32_t>(taken);
  } else if (taken == 1) {
    queue.heap.pop_front();
  }
  queue.in_flight += static_cast<uint32_t>(taken);
  queue.most_in_flight = std::max(queue.most_in_flight, queue.in_flight);
  waiting_ -= taken;
  return static_cast<uint32_t>(taken);
}

}  // namespace slime::bench
