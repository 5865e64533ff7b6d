#include "message/receiver/flush_requests.h"

#include <algorithm>
#include <utility>

namespace slime {

Result<void> FlushRequests::open(Comm& comm, const Device& device, double limit_seconds) {
  auto opened = flushes_.open(device, limit_seconds);
  if (!opened || !flushes_.needed()) return opened;
  requests_.reserve(kMaxRequests);
  while (requests_.size() < kMaxRequests) requests_.emplace_back(&comm);
  return {};
}

FlushRequest* FlushRequests::begin(const void* address, const MemoryRegion* region, uint64_t now_ns,
                                   Status* status) {
  *status = Status::kOk;
  if (requests_.empty()) return nullptr;
  const auto free = std::ranges::find(requests_, false, &FlushRequest::active);
  if (free == requests_.end()) {
    *status = fail(make_error(Status::kInvalid, 0,
                              "more than %d flushes are open; test those first", kMaxRequests));
    return nullptr;
  }
  *status = flushes_.begin(address, region, now_ns, &free->flush);
  if (*status != Status::kOk) return fail(flushes_.failure()), nullptr;
  free->active = true;
  ++open_;
  return &*free;
}

// The pool is one array, so the address of a request shows whether it is in it.
FlushRequest* FlushRequests::find(Request* request) {
  const auto first = reinterpret_cast<uintptr_t>(static_cast<Request*>(requests_.data()));
  const uintptr_t offset = reinterpret_cast<uintptr_t>(request) - first;
  return offset < requests_.size() * sizeof(FlushRequest) ? static_cast<FlushRequest*>(request)
                                                          : nullptr;
}

Status FlushRequests::test(FlushRequest& request, uint64_t now_ns, bool* done) {
  const Status status = flushes_.test(request.flush, now_ns, done);
  if (status != Status::kOk) return fail(flushes_.failure());
  if (!*done) return status;
  request.active = false;
  --open_;
  return status;
}

Status FlushRequests::fail(Error error) {
  failure_ = std::move(error);
  return failure_.status;
}

}  // namespace slime
