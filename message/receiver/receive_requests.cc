#include "message/receiver/receive_requests.h"

#include <algorithm>
#include <bit>

namespace slime {

const char* ReceiveRequest::waits_for() const {
  const bool begun = std::any_of(parts.begin(), parts.begin() + count,
                                 [](const ReceivePart& part) { return part.arrived != 0; });
  return begun ? "the rest of a message" : "the sender to send";
}

ReceiveRequests::ReceiveRequests(Comm* comm, const LinkContext& link) : link_(link) {
  requests_.reserve(kCtsEntries);
  free_.reserve(kCtsEntries);
  for (uint32_t i = 0; i < kCtsEntries; ++i) {
    requests_.emplace_back(comm, static_cast<uint16_t>(i));
    free_.push_back(static_cast<uint16_t>(kCtsEntries - 1 - i));
  }
}

// A new generation for each use, so that late stripes of the last one are ignored.
// Each part gets the next ordinal of its tag.
ReceiveRequest* ReceiveRequests::take(std::span<const Receive> receives, uint64_t now_ns) {
  SLIME_CHECK(any_free() && receives.size() <= kMaxReceives);
  ReceiveRequest* request = &requests_[free_.back()];
  SLIME_CHECK(!request->active);
  free_.pop_back();
  ++outstanding_;
  request->active = true;
  request->cts_bytes = 0;
  request->returned = request->cts_open = request->held = false;
  request->generation = (request->generation + 1) & kGenerationMask;
  request->count = request->incomplete = static_cast<uint32_t>(receives.size());
  request->started_ns = now_ns;
  for (size_t i = 0; i < receives.size(); ++i) {
    const Receive& receive = receives[i];
    ReceivePart& part = request->parts[i];
    part = ReceivePart();
    part.data = static_cast<std::byte*>(receive.data);
    part.capacity = receive.capacity;
    part.region = receive.region;
    part.in_device = receive.region != nullptr && receive.region->kind != MemoryKind::kHost;
    part.tag = receive.tag;
    part.ordinal = posted_.of(receive.tag)++;
  }
  return request;
}

// A receive that is complete, or belongs to another ordinal, does not match.
ReceivePart* ReceiveRequest::find(int32_t tag, uint32_t ordinal) {
  if (!active || incomplete == 0) return nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    ReceivePart& part = parts[i];
    if (!part.complete && part.tag == tag && part.ordinal == ordinal) return &part;
  }
  return nullptr;
}

bool ReceiveRequests::find(int32_t tag, uint32_t ordinal, ReceiveRequest* likely,
                           ReceiveRequest** request, ReceivePart** part) {
  *request = likely;
  if (likely != nullptr && (*part = likely->find(tag, ordinal)) != nullptr) return true;
  for (ReceiveRequest& candidate : requests_) {
    *request = &candidate;
    if ((*part = candidate.find(tag, ordinal)) != nullptr) return true;
  }
  return false;
}

void ReceiveRequests::give_back(ReceiveRequest& request) {
  SLIME_CHECK(request.active && !request.returned && outstanding_ > 0);
  request.returned = true;
  --outstanding_;
  retire_if_idle(request);
}

// Frees the request if the sender has read its CTS. After a failure of the link it is free at once,
// because no CTS is read any more.
void ReceiveRequests::retire(ReceiveRequest& request) {
  SLIME_CHECK(request.active && request.returned && request.incomplete == 0);
  const bool record_free = !request.cts_open && (request.cts_bytes == 0 || seen(request));
  const uint64_t bit = uint64_t{1} << request.index;
  unretired_ |= bit;
  if (!record_free && link_.status() == Status::kOk) return;
  unretired_ &= ~bit;
  request.active = request.returned = false;
  free_.push_back(request.index);
}

void ReceiveRequests::retire_seen() {
  for (uint64_t left = unretired_; left != 0; left &= left - 1) {
    retire_if_idle(requests_[static_cast<size_t>(std::countr_zero(left))]);
  }
}

}  // namespace slime
