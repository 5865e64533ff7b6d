// Small messages ahead of their CTS: copied here, written into a buffer of the receiver, copied
// there. Bounded by credits: a buffer is written again only when the receiver has consumed what was
// in it.

#include <bit>
#include <cstring>
#include <ctime>

#include "base/log.h"
#include "engine/send_comm.h"

namespace slime {

bool SendCommImpl::eager_fits(size_t bytes, const MemoryRegion* region) {
  if (eager_max_ == 0 || bytes > eager_max_) return false;
  if (region != nullptr && region->kind != MemoryKind::kHost) return false;
  if (eager_sent_ - eager_consumed_ >= kEagerBuffers) return false;
  return !eager_[eager_sent_ % kEagerBuffers].open && link_.room(link_.pick(bytes)) > 0;
}

void SendCommImpl::start_eager(const void* data, size_t bytes, int tag, Request** request) {
  const uint32_t index = eager_sent_++;
  const uint32_t buffer = index % kEagerBuffers;
  std::byte* place = outbox_.at(buffer * eager_buffer_bytes(eager_max_));
  const EagerHeader header{index, static_cast<uint32_t>(bytes), tag, sent_.of(tag)++, next_cts_, 0};
  told_ = next_cts_;
  ++eager_streak_;
  std::memcpy(place, &header, sizeof header);
  if (bytes > 0) std::memcpy(place + sizeof header, data, bytes);
  // The bytes have been copied, but the request stays open until the rail has taken them: after
  // the last test nobody would post them.
  SendRequest* taken = take_request(data, bytes, nullptr);
  taken->eager = true;
  taken->open = 1;
  eager_[buffer] = {index, static_cast<uint32_t>(sizeof header + bytes), taken->index, 0, true};
  submit_eager(buffer, false);
  link_.hurry(eager_[buffer].rail);
  waiting_since_ns_ = 0;
  achieved();
  *request = taken;
}

// The receiver's credits say which messages have arrived, so they need no confirmation. A message
// that is sent again does: its first copy may have brought the credit to use the buffer for
// another, which the second must not overwrite. And where works may overtake each other, a probe
// that comes back says nothing of a message before it: see settled().
void SendCommImpl::submit_eager(uint32_t buffer, bool again) {
  EagerBuffer& eager = eager_[buffer];
  const size_t rail = link_.pick(eager.bytes);
  const size_t offset = buffer * eager_buffer_bytes(eager_max_);
  eager.rail = static_cast<uint8_t>(rail);
  Work work = link_.write_of(outbox_, offset, eager.bytes, rail);
  work.immediate = eager_immediate(eager.index);
  const bool confirmed = again || !link_.ordered(rail);
  work.unconfirmed = !confirmed;
  work.cookie =
      WorkId{WorkId::Kind::kEager, confirmed, static_cast<uint16_t>(buffer), eager.index}.pack();
  link_.submit(rail, work);
}

void SendCommImpl::repeat_eager(size_t dead_rail) {
  for (uint32_t buffer = 0; buffer < kEagerBuffers; ++buffer) {
    EagerBuffer& eager = eager_[buffer];
    if (eager.rail != dead_rail) continue;
    if (has_arrived(eager)) {
      finish_eager(eager);
    } else {
      eager.open = true;
      submit_eager(buffer, true);
    }
  }
}

void SendCommImpl::finish_eager(EagerBuffer& eager) {
  eager.open = false;
  if (eager.request != kNoRequest) requests_[eager.request].open = 0;
  eager.request = kNoRequest;
}

bool SendCommImpl::settled() {
  if (link_.rail_count() == 1 || link_.status() != Status::kOk) return true;
  bool all = true;
  uint32_t carriers = 0;
  for (const EagerBuffer& eager : eager_) {
    if (eager.rail == EagerBuffer::kNoRail || has_arrived(eager)) continue;
    all &= !eager.open;
    carriers |= 1u << eager.rail;
  }
  for (; carriers != 0; carriers &= carriers - 1) {
    all &= link_.has_delivered(static_cast<size_t>(std::countr_zero(carriers)));
  }
  return all;
}

// Mostly the peer's kernel has everything. If a rail has just died, its death must be noticed and
// answered by the peer, and what it carried sent again.
void SendCommImpl::settle() {
  const Call call(*this);
  constexpr int kTimeouts = 3;
  constexpr timespec kPause{0, 200'000};
  const uint64_t limit_ns = kTimeouts * seconds_to_ns(link_.settings().rail_timeout);
  for (const uint64_t begun_ns = link_.now_ns(); !settled();) {
    if (move() == Status::kOk && link_.now_ns() - begun_ns > limit_ns) {
      SLIME_WARN("peer %s: closed without knowing whether the last small messages arrived",
                 link_.peer().c_str());
      return;
    }
    ::nanosleep(&kPause, nullptr);
  }
}

void SendCommImpl::return_credits(uint32_t consumed) {
  const auto more = static_cast<int32_t>(consumed - eager_consumed_);
  if (more > 0 && consumed - eager_consumed_ <= eager_sent_ - eager_consumed_) {
    eager_consumed_ = consumed;
  }
}

}  // namespace slime
