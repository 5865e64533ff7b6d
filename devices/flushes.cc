#include "devices/flushes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "settings/settings.h"

namespace slime {

Result<void> Flushes::open(const Device& device, double limit_seconds) {
  limit_ns_ = seconds_to_ns(limit_seconds);
  if (!device.properties().takes_device_memory()) return {};
  for (slime::Rail* rail : device.rails()) {
    auto flusher = rail->open_flusher();
    if (!flusher) return slime::fail(flusher.error());
    needed_ |= *flusher != nullptr;
    rails_.push_back({rail->caps().name, std::move(*flusher)});
  }
  return {};
}

// Reads of earlier flushes count too; begin_reads() adds those of this one.
Status Flushes::begin(const void* address, const MemoryRegion* region, uint64_t now_ns,
                      Flush* flush) {
  *flush = {now_ns, delivered_, static_cast<const std::byte*>(address), region, {}};
  for (size_t i = 0; i < rails_.size(); ++i) flush->reads[i] = rails_[i].begun;
  return begin_reads(*flush);
}

// Begins a read on each rail that still needs one. kAgain: the rail has no place now, and the next
// test() tries again. A read that has begun covers everything that the rail delivered before.
Status Flushes::begin_reads(Flush& flush) {
  for (uint32_t left = flush.to_begin; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    Rail& rail = rails_[i];
    if (rail.flusher != nullptr) {
      const Status begun = rail.flusher->begin(
          flush.address, flush.region->offset_of(flush.address), flush.region->keys[i]);
      if (begun == Status::kAgain) continue;
      if (begun != Status::kOk) return fail(rail.flusher->failure());
      flush.reads[i] = ++rail.begun;
    }
    flush.to_begin &= ~(uint32_t{1} << i);
    delivered_ &= ~(uint32_t{1} << i);
  }
  return Status::kOk;
}

// Polls each rail that has reads under way, also for other flushes, because complete reads make
// room for reads that could not begin.
Status Flushes::test(Flush& flush, uint64_t now_ns, bool* done) {
  *done = false;
  for (Rail& rail : rails_) {
    if (rail.completed == rail.begun) continue;
    if (rail.flusher->poll(&rail.completed) != Status::kOk) return fail(rail.flusher->failure());
    SLIME_CHECK(rail.completed <= rail.begun);
  }
  if (const Status status = begin_reads(flush); status != Status::kOk) return status;
  bool complete = flush.to_begin == 0;
  for (size_t i = 0; i < rails_.size(); ++i) complete &= rails_[i].completed >= flush.reads[i];
  if (!complete) {
    const uint64_t waited_ns = now_ns - std::min(flush.begun_ns, now_ns);
    return waited_ns <= limit_ns_ ? Status::kOk : fail(overdue(flush, waited_ns));
  }
  *done = true;
  return Status::kOk;
}

Status Flushes::fail(Error error) {
  failure_ = std::move(error);
  return failure_.status;
}

Error Flushes::overdue(const Flush& flush, uint64_t ns) const {
  std::string names;
  for (size_t i = 0; i < rails_.size(); ++i) {
    const bool waits = (flush.to_begin >> i & 1) != 0 || rails_[i].completed < flush.reads[i];
    if (waits) names += (names.empty() ? "" : ", ") + rails_[i].name;
  }
  return make_error(
      Status::kTimeout, 0,
      "flush at %p: the read on rail %s has not completed for %.0f s "
      "(NCCL_SLIME_PEER_TIMEOUT); see whether its port is up, and dmesg for errors of "
      "that NIC or of the GPU",
      static_cast<const void*>(flush.address), names.c_str(), static_cast<double>(ns) * 1e-9);
}

}  // namespace slime
