#include "message/receiver/eager_inbox.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace slime {

EagerInbox::Arrival EagerInbox::arrive(uint32_t immediate, uint64_t bytes, uint32_t* buffer) {
  const uint32_t index = widen(consumed_, immediate & kEagerIndexMask, kEagerIndexMask);
  const auto ahead = static_cast<int32_t>(index - consumed_);
  *buffer = index % kEagerBuffers;
  const uint32_t bit = 1u << *buffer;
  if (ahead < 0 || ((waiting_ | taken_) & bit)) return Arrival::kRepeated;
  // The checks use the copy, which the peer cannot write.
  EagerHeader& header = headers_[*buffer];
  std::memcpy(&header, start(*buffer), sizeof header);
  const bool whole = header.bytes() <= eager_max_ && bytes == sizeof header + header.length;
  if (ahead >= static_cast<int32_t>(kEagerBuffers) || header.index != index ||
      (!whole && bytes != sizeof header)) {
    return Arrival::kMalformed;
  }
  if (!whole) bare_ |= bit;  // for good: the link fails when its receive comes
  waiting_ |= bit;
  return Arrival::kNew;
}

bool EagerInbox::has_tag(int32_t tag) const {
  for (uint32_t left = waiting_; left != 0; left &= left - 1) {
    if (headers_[static_cast<size_t>(std::countr_zero(left))].tag == tag) return true;
  }
  return false;
}

std::optional<uint32_t> EagerInbox::find(int32_t tag, uint32_t ordinal) const {
  for (uint32_t left = waiting_; left != 0; left &= left - 1) {
    const auto buffer = static_cast<uint32_t>(std::countr_zero(left));
    if (headers_[buffer].tag == tag && headers_[buffer].ordinal == ordinal) return buffer;
  }
  return std::nullopt;
}

// The credits of this message, and of younger ones that are taken already, may return now.
void EagerInbox::take(uint32_t buffer) {
  SLIME_CHECK(waiting_ >> buffer & 1);
  waiting_ &= ~(1u << buffer);
  taken_ |= 1u << buffer;
  for (; taken_ >> (consumed_ % kEagerBuffers) & 1; ++consumed_) {
    taken_ &= ~(1u << (consumed_ % kEagerBuffers));
  }
}

}  // namespace slime
