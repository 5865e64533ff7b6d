#include "engine/receiver/flushes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "settings/settings.h"

namespace slime {

// A device that takes no device memory, and rails that need no flush, get no requests, so begin()
// returns at once.
Result<void> Flushes::open(Comm& comm, const Device& device, double limit_seconds) {
  limit_ns_ = seconds_to_ns(limit_seconds);
  if (!device.properties().takes_device_memory()) return {};
  bool any = false;
  for (slime::Rail* rail : device.rails()) {
    auto flusher = rail->open_flusher();
    if (!flusher) return slime::fail(flusher.error());
    any |= *flusher != nullptr;
    rails_.push_back({rail->caps().name, std::move(*flusher)});
  }
  if (!any) return {};
  requests_.reserve(kMaxRequests);
  while (requests_.size() < kMaxRequests) requests_.emplace_back(&comm);
  return {};
}

FlushRequest* Flushes::begin(const void* address, const MemoryRegion* region, uint64_t now_ns,
                             Status* status) {
  *status = Status::kOk;
  if (requests_.empty()) return nullptr;
  const auto free = std::ranges::find(requests_, false, &FlushRequest::active);
  if (free == requests_.end()) {
    *status = fail(make_error(Status::kInvalid, 0,
                              "more than %d flushes are open; test those first", kMaxRequests));
    return nullptr;
  }
  free->begun_ns = now_ns;
  free->to_begin = delivered_;
  free->address = static_cast<const std::byte*>(address);
  free->region = region;
  // Reads of earlier flushes count too; begin_reads() adds those of this one.
  for (size_t i = 0; i < rails_.size(); ++i) free->reads[i] = rails_[i].begun;
  *status = begin_reads(*free);
  if (*status != Status::kOk) return nullptr;
  free->active = true;
  ++open_;
  return &*free;
}

// Begins a read on each rail that still needs one. kAgain: the rail has no place now, and the next
// test() tries again. A read that has begun covers everything that the rail delivered before.
Status Flushes::begin_reads(FlushRequest& request) {
  for (uint32_t left = request.to_begin; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    Rail& rail = rails_[i];
    if (rail.flusher != nullptr) {
      const Status begun = rail.flusher->begin(
          request.address, request.region->offset_of(request.address), request.region->keys[i]);
      if (begun == Status::kAgain) continue;
      if (begun != Status::kOk) return fail(rail.flusher->failure());
      request.reads[i] = ++rail.begun;
    }
    request.to_begin &= ~(uint32_t{1} << i);
    delivered_ &= ~(uint32_t{1} << i);
  }
  return Status::kOk;
}

// The pool of flush requests is one array, so the address of a request shows whether it is in it.
FlushRequest* Flushes::find(Request* request) {
  const auto first = reinterpret_cast<uintptr_t>(static_cast<Request*>(requests_.data()));
  const uintptr_t offset = reinterpret_cast<uintptr_t>(request) - first;
  return offset < requests_.size() * sizeof(FlushRequest) ? static_cast<FlushRequest*>(request)
                                                          : nullptr;
}

// Polls each rail that has reads under way, also for other flushes, because complete reads make
// room for reads that could not begin.
Status Flushes::test(FlushRequest& request, uint64_t now_ns, bool* done) {
  *done = false;
  for (Rail& rail : rails_) {
    if (rail.completed == rail.begun) continue;
    if (rail.flusher->poll(&rail.completed) != Status::kOk) return fail(rail.flusher->failure());
  }
  if (const Status status = begin_reads(request); status != Status::kOk) return status;
  bool complete = request.to_begin == 0;
  for (size_t i = 0; i < rails_.size(); ++i) complete &= rails_[i].completed >= request.reads[i];
  if (!complete) {
    const uint64_t waited_ns = now_ns - std::min(request.begun_ns, now_ns);
    return waited_ns <= limit_ns_ ? Status::kOk : fail(overdue(request, waited_ns));
  }
  request.active = false;
  --open_;
  *done = true;
  return Status::kOk;
}

Status Flushes::fail(Error error) {
  failure_ = std::move(error);
  return failure_.status;
}

Error Flushes::overdue(const FlushRequest& request, uint64_t ns) const {
  std::string names;
  for (size_t i = 0; i < rails_.size(); ++i) {
    const bool waits = (request.to_begin >> i & 1) != 0 || rails_[i].completed < request.reads[i];
    if (waits) names += (names.empty() ? "" : ", ") + rails_[i].name;
  }
  return make_error(
      Status::kTimeout, 0,
      "iflush at %p: the read on rail %s has not completed for %.0f s "
      "(NCCL_SLIME_PEER_TIMEOUT); see whether its port is up, and dmesg for errors of "
      "that NIC or of the GPU",
      static_cast<const void*>(request.address), names.c_str(), static_cast<double>(ns) * 1e-9);
}

}  // namespace slime
