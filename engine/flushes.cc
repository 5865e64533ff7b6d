#include "engine/flushes.h"

#include <algorithm>
#include <bit>

namespace slime {

Result<void> Flushes::open(Comm& comm, const Device& device) {
  if (!device.properties().takes(MemoryKind::kCuda)) return {};
  bool any = false;
  for (slime::Rail* rail : device.rails()) {
    auto flusher = rail->open_flusher();
    if (!flusher) return slime::fail(flusher.error());
    any |= *flusher != nullptr;
    rails_.push_back({std::move(*flusher)});
  }
  if (!any) return {};
  requests_.reserve(kMaxRequests);
  while (requests_.size() < kMaxRequests) requests_.emplace_back(&comm);
  return {};
}

FlushRequest* Flushes::begin(const void* address, const MemoryRegion* region, Status* status) {
  *status = Status::kOk;
  if (requests_.empty()) return nullptr;
  const auto free = std::ranges::find(requests_, false, &FlushRequest::active);
  if (free == requests_.end()) {
    failure_ = make_error(Status::kInvalid, 0, "more than %d flushes are open", kMaxRequests);
    *status = failure_.status;
    return nullptr;
  }
  free->active = true;
  ++open_;
  free->to_begin = delivered_;
  free->address = static_cast<const std::byte*>(address);
  free->region = region;
  for (size_t i = 0; i < rails_.size(); ++i) free->reads[i] = rails_[i].begun;
  *status = begin_reads(*free);
  return *status == Status::kOk ? &*free : nullptr;
}

Status Flushes::begin_reads(FlushRequest& request) {
  for (uint32_t left = request.to_begin; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    Rail& rail = rails_[i];
    const Status begun = rail.flusher == nullptr
                             ? Status::kOk
                             : rail.flusher->begin(request.address, request.region->keys[i].local);
    if (begun == Status::kAgain) continue;
    if (begun != Status::kOk) return fail(rail);
    request.to_begin &= ~(uint32_t{1} << i);
    delivered_ &= ~(uint32_t{1} << i);
    request.reads[i] = rail.flusher == nullptr ? 0 : ++rail.begun;
  }
  return Status::kOk;
}

FlushRequest* Flushes::find(Request* request) {
  const auto begin = reinterpret_cast<uintptr_t>(requests_.data());
  const auto address = reinterpret_cast<uintptr_t>(static_cast<FlushRequest*>(request));
  const bool ours = address - begin < requests_.size() * sizeof(FlushRequest);
  return ours ? static_cast<FlushRequest*>(request) : nullptr;
}

Status Flushes::test(FlushRequest& request, bool* done) {
  *done = false;
  if (const Status status = begin_reads(request); status != Status::kOk) return status;
  bool complete = request.to_begin == 0;
  for (size_t i = 0; i < rails_.size(); ++i) {
    Rail& rail = rails_[i];
    if (rail.completed < request.reads[i] && rail.flusher->poll(&rail.completed) != Status::kOk) {
      return fail(rail);
    }
    complete &= rail.completed >= request.reads[i];
  }
  *done = complete;
  if (complete) {
    request.active = false;
    --open_;
  }
  return Status::kOk;
}

Status Flushes::fail(const Rail& rail) {
  failure_ = rail.flusher->failure();
  return failure_.status;
}

}  // namespace slime
