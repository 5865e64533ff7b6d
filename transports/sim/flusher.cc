// Device memory of a simulated rail: what arrives there is kept back until a flush has read behind
// it.
#include <cstring>

#include "transports/sim/sim_rail.h"

namespace slime::sim {

void Rail::write(const Work& work, std::byte* target, const std::byte* source, uint64_t bytes) {
  if (model_.needs_flush && memory_.range_of(work.remote_key).kind == MemoryKind::kCuda) {
    unflushed_.push_back({target, {source, source + bytes}});
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

// What was kept back for a range that goes.
void Rail::write_back_range(const MemoryTable::Known& range) {
  for (Unflushed& each : unflushed_) {
    if (reinterpret_cast<uint64_t>(each.target) - range.address >= range.bytes) continue;
    std::memcpy(each.target, each.bytes.data(), each.bytes.size());
    each.bytes.clear();
  }
}

Result<std::unique_ptr<slime::Flusher>> Rail::open_flusher() {
  if (!model_.needs_flush) return nullptr;
  return std::make_unique<Flusher>(*this);
}

Status Flusher::begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) {
  const auto place = reinterpret_cast<uintptr_t>(address);
  const bool allowed = rail_.memory_.allows(keys.local, true, place, 1);
  if (!allowed || rail_.memory_.range_of(keys.remote).address + offset != place) {
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

}  // namespace slime::sim
