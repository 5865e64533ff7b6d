#include "transports/sim/sim_rail.h"

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
  return memory_.add(start, range.bytes, range.kind);
}

void Rail::deregister_memory(const MemoryKeys& keys) {
  write_back_range(memory_.range_of(keys.remote));
  if (!memory_.remove(keys)) ++network_.violations_.bad_calls;
}

std::byte* Rail::target_of(const Work& work) {
  const uint64_t address = model_.uses_offsets
                               ? memory_.range_of(work.remote_key).address + work.remote_offset
                               : work.remote_address;
  if (!memory_.allows(work.remote_key, false, address, work.length)) return nullptr;
  return reinterpret_cast<std::byte*>(address);
}

Result<std::unique_ptr<slime::Channel>> Rail::open_channel(const ChannelOptions& options) {
  return std::unique_ptr<slime::Channel>(new Channel(network_, *this, options));
}

void Rail::configure(const RailCaps& caps, const RailModel& model) {
  caps_ = caps;
  model_ = model;
  ++life_;
  network_.schedule_death(*this);
}

void Rail::kill(Death death) {
  if (dead_) return;
  died_of_ = death;
  network_.kill(*this);
}

void Rail::revive() {
  dead_ = false;
  ++life_;
}

void Rail::start_over() {
  revive();
  wire_free_ps_ = 0;
  works_posted_ = 0;
  unflushed_.clear();
  written_back_ = 0;
  network_.schedule_death(*this);
}

}  // namespace slime::sim
