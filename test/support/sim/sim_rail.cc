#include "test/support/sim/sim_rail.h"

#include "transports/channel_common.h"

#include <algorithm>
#include <cstring>

namespace slime::sim {

Rail::~Rail() { network_.forget_rail(*this); }

Result<MemoryKeys> Rail::register_memory(const MemoryRange& range) {
  const auto start = reinterpret_cast<uintptr_t>(range.address);
  if (start == 0 || range.bytes == 0 || start + range.bytes < start) {
    return fail(make_error(Status::kInvalid, 0, "sim rail %s: cannot register %zu bytes at %p",
                           caps_.name.c_str(), range.bytes, range.address));
  }
  if (!takes(caps_, range)) {
    return fail(make_error(Status::kUnsupported, 0,
                           "sim rail %s: cannot register %zu bytes of memory of kind %u%s, this "
                           "rail reaches kinds 0x%x%s",
                           caps_.name.c_str(), range.bytes, static_cast<unsigned>(range.kind),
                           range.dma_buf >= 0 ? " as a DMA-BUF" : "", caps_.memory_kinds,
                           caps_.dma_buf ? "" : " and no DMA-BUF"));
  }
  const auto key = regions_.add(range);
  if (!key) return fail(key.error());
  return MemoryKeys{*key, *key ^ kRemoteBit};
}

void Rail::deregister_memory(const MemoryKeys& keys) {
  write_back_range(keys.remote);
  const bool known = keys.remote == (keys.local ^ kRemoteBit) && regions_.remove(keys.local);
  if (!known) ++network_.violations_.bad_calls;
}

std::byte* Rail::target_of(const Work& work) {
  const uint64_t key = work.remote_key ^ kRemoteBit;
  auto* address = reinterpret_cast<std::byte*>(work.remote_address);
  if (model_.uses_offsets) {
    const RegionTable::Pin pin(regions_, key, 0, 0);
    address = reinterpret_cast<std::byte*>(pin.start() + work.remote_offset);
  }
  return is_local(key, address, work.length) ? address : nullptr;
}

Result<std::unique_ptr<slime::Channel>> Rail::open_channel(const ChannelOptions& options) {
  return std::unique_ptr<slime::Channel>(new Channel(network_, *this, options));
}

void Rail::configure(const RailCaps& caps, const RailModel& model) {
  caps_ = caps;
  model_ = model;
  ++epoch_;
  network_.schedule_death(*this);
}

void Rail::kill(Death death) {
  if (dead_) return;
  death_ = death;
  network_.kill(*this);
}

void Rail::revive() {
  dead_ = false;
  ++epoch_;
}

void Rail::reset() {
  revive();
  wire_free_ps_ = 0;
  works_posted_ = 0;
  unflushed_.clear();
  written_back_ = 0;
  network_.schedule_death(*this);
}

// Device memory: what arrives there is kept back until a flush has read behind it.

void Rail::write_memory(const Work& work, std::byte* target, const std::byte* source,
                        uint64_t bytes) {
  const RegionTable::Pin pin(regions_, work.remote_key ^ kRemoteBit, 0, 0);
  if (model_.needs_flush && pin.kind() == MemoryKind::kCuda) {
    unflushed_.push_back({work.remote_key, target, {source, source + bytes}});
  } else {
    std::memcpy(target, source, bytes);
  }
}

void Rail::write_back(uint64_t until) {
  for (; written_back_ < until; ++written_back_) {
    const Unflushed& oldest = unflushed_.front();
    std::memcpy(oldest.target, oldest.bytes.data(), oldest.bytes.size());
    unflushed_.pop_front();
  }
}

// What was kept back for a range that is deregistered.
void Rail::write_back_range(uint64_t remote_key) {
  for (Unflushed& each : unflushed_) {
    if (each.remote_key != remote_key) continue;
    std::memcpy(each.target, each.bytes.data(), each.bytes.size());
    each.bytes.clear();
  }
}

Result<std::unique_ptr<slime::Flusher>> Rail::open_flusher() {
  if (!model_.needs_flush) return nullptr;
  return std::make_unique<Flusher>(*this);
}

Status Flusher::begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) {
  const RegionTable::Pin pin(rail_.regions_, keys.remote ^ Rail::kRemoteBit, 0, 0);
  const auto place = pin.start() + offset;
  if (!rail_.is_local(keys.local, address, 1) || reinterpret_cast<uint64_t>(address) != place) {
    ++rail_.network_.violations_.local_access;
    failure_ =
        make_error(Status::kInvalid, 0, "sim rail %s: a flush at %p, which is not registered so",
                   rail_.caps().name.c_str(), static_cast<const void*>(address));
    return failure_.status;
  }
  if (reads_.size() == kMostReads) return Status::kAgain;
  const uint64_t done_ns = rail_.network_.now_ns() + rail_.model().latency_ns;
  reads_.push_back({done_ns, rail_.written_back_ + rail_.unflushed_.size()});
  return Status::kOk;
}

Status Flusher::poll(uint64_t* completed) {
  rail_.network_.run_due();
  for (; !reads_.empty() && reads_.front().done_ns <= rail_.network_.now_ns(); ++completed_) {
    rail_.write_back(reads_.front().behind);
    reads_.pop_front();
  }
  *completed = completed_;
  return Status::kOk;
}

// The data path of a channel, as its owner calls it.

Status Channel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  network_.run_due();
  if (end_.failed) return end_.error.status;
  if (!end_.connected) {
    ++network_.violations_.bad_calls;
    return network_.fail(end_, true,
                         make_error(Status::kInvalid, 0, "posted before it was connected"));
  }
  const RailCaps& caps = end_.rail->caps();
  const RailModel& model = end_.rail->model();
  const uint32_t room = caps.send_queue_depth - std::min(end_.outstanding, caps.send_queue_depth);
  const size_t count = std::min<size_t>({works.size(), room, caps.max_batch});
  if (works.empty()) return Status::kOk;
  if (count == 0) {
    counters.futile_posts.add();
    network_.charge(model.refused_ns);
    return Status::kOk;
  }
  counters.doorbells.add();
  network_.charge(model.doorbell_ns + count * model.post_ns);
  if (end_.failed) return end_.error.status;  // it failed while the processor was at it
  for (; *taken < count; ++*taken) {
    if (!network_.post_one(end_, works[*taken])) return end_.error.status;
  }
  return Status::kOk;
}

size_t Channel::collect(std::span<Done> done) {
  size_t count = 0;
  const bool sent_lost = end_.fenced || (end_.failed && end_.abrupt);
  while (count < done.size() && !end_.sent.empty() && !sent_lost) {
    const Sent sent = end_.sent.front();
    end_.sent.pop();
    if (!sent.repeat) --end_.outstanding;
    done[count++] = slime::sent(sent.cookie);
  }
  while (count < done.size() && !end_.arrivals.empty()) {
    if (network_.report(end_, &done[count])) ++count;
  }
  return count;
}

Status Channel::poll(std::span<Done> done, size_t* count) {
  network_.charge(end_.rail->model().poll_ns);
  counters.polls.add();
  *count = end_.failure_returned && !end_.fenced ? 0 : collect(done);
  if (*count > 0) return Status::kOk;
  counters.empty_polls.add();
  if (!end_.failed || end_.fenced) return Status::kOk;
  // What had arrived comes first; without room for it, the failure has to wait.
  if (!end_.failure_returned && done.empty() && !end_.arrivals.empty()) return Status::kOk;
  end_.failure_returned = true;
  return end_.error.status;
}

}  // namespace slime::sim
