#include "transports/sim/sim_rail.h"

namespace slime::sim {

Rail::~Rail() { network_.forget_rail(*this); }

Result<MemoryKeys> Rail::register_memory(void* address, size_t bytes, MemoryKind kind) {
  const auto start = reinterpret_cast<uintptr_t>(address);
  if (address == nullptr || bytes == 0 || start + bytes < start) {
    return fail(make_error(Status::kInvalid, 0, "sim rail %s: cannot register %zu bytes at %p",
                           caps_.name.c_str(), bytes, address));
  }
  if ((caps_.memory_kinds & static_cast<uint32_t>(kind)) == 0) {
    return fail(make_error(Status::kUnsupported, 0,
                           "sim rail %s: cannot register %zu bytes of memory of kind %u, this "
                           "rail reaches kinds 0x%x only",
                           caps_.name.c_str(), bytes, static_cast<unsigned>(kind),
                           caps_.memory_kinds));
  }
  return memory_.add(start, bytes);
}

void Rail::deregister_memory(const MemoryKeys& keys) {
  if (!memory_.remove(keys)) ++network_.violations_.bad_calls;
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
  network_.schedule_death(*this);
}

}  // namespace slime::sim
