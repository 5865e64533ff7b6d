#include "test/support/sim/sim_rail.h"

#include <algorithm>
#include <cstring>

#include "transports/channel_common.h"

namespace slime::sim {

Rail::Rail(Network& network, const RailCaps& caps, const RailModel& model)
    : network_(network),
      id_(static_cast<Index>(network.rails_.size())),
      caps_(caps),
      model_(model) {
  network_.rails_.push_back(this);
  if (caps_.oob_address.empty()) caps_.oob_address = "127.0.0.1";  // all hosts are this one
  schedule_death(model_.dies_at_ns);
}

Rail::~Rail() { network_.rails_[id_] = nullptr; }

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
  if (!known) ++network_.core_.violations.bad_calls;
}

std::byte* Rail::place_of(const Work& work) const {
  const uint64_t key = work.remote_key ^ kRemoteBit;
  auto* address = reinterpret_cast<std::byte*>(work.remote_address);
  if (model_.uses_offsets) {
    const RegionTable::Pin pin(regions_, key, 0, 0);
    address = reinterpret_cast<std::byte*>(pin.start() + work.remote_offset);
  }
  const uint8_t right = work.opcode == Opcode::kRead ? kRemoteRead : kRemoteWrite;
  return is_local(key, address, work.length, right) ? address : nullptr;
}

Result<std::unique_ptr<slime::Channel>> Rail::open_channel(const ChannelOptions& options) {
  if (auto checked = check_poller(*this, options); !checked)
    return fail(std::move(checked.error()));
  return std::make_unique<Channel>(network_, *this, options);
}

Result<std::unique_ptr<slime::Poller>> Rail::open_poller() {
  return std::make_unique<Poller>(network_, *this);
}

void Rail::configure(const RailCaps& caps, const RailModel& model) {
  caps_ = caps;
  model_ = model;
  ++epoch_;
  schedule_death(model_.dies_at_ns);
}

void Rail::kill(Death death) {
  if (dead_) return;
  death_ = death;
  dead_ = true;
  network_.failures_.kill(*this);
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
  schedule_death(model_.dies_at_ns);
}

// 0 or a time that has passed: never.
void Rail::schedule_death(uint64_t at_ns) {
  if (at_ns == 0 || at_ns < network_.now_ns()) return;
  network_.core_.schedule(at_ns, Event::Kind::kDeath, {id_, epoch_});
}

void Rail::count_work() {
  if (++works_posted_ != model_.dies_after_works) return;
  network_.core_.schedule(network_.now_ns(), Event::Kind::kDeath, {id_, epoch_});
}

uint64_t Rail::occupy_wire(const Rail& peer, uint32_t bytes) {
  const uint64_t mine = model_.rate_mbps;
  const uint64_t other = peer.model_.rate_mbps;
  const uint64_t rate = mine == 0 || other == 0 ? std::max(mine, other) : std::min(mine, other);
  const uint64_t bytes_ps = rate == 0 ? 0 : bytes * uint64_t{8'000'000} / rate;
  wire_free_ps_ =
      std::max(wire_free_ps_, network_.now_ns() * 1000) + bytes_ps + model_.wire_work_ns * 1000;
  return (wire_free_ps_ + 999) / 1000;
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
    ++rail_.network_.core_.violations.local_access;
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

}  // namespace slime::sim
