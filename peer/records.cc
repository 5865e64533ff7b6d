#include "peer/records.h"

namespace slime {

void Records::send(RecordKind kind, std::span<const std::byte> payload) {
  waiting_.push_back({kind, {payload.begin(), payload.end()}});
  move();
}

void Records::move() {
  for (; !waiting_.empty() && ring_.has_room(waiting_.front().payload.size());
       waiting_.pop_front()) {
    ring_.put(static_cast<uint16_t>(waiting_.front().kind), {waiting_.front().payload});
  }
}

Result<std::optional<Record>> Records::next() {
  auto record = ring_.look();
  if (record && *record) ring_.take();
  return record;
}

}  // namespace slime
