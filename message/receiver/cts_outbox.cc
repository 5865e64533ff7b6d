#include "message/receiver/cts_outbox.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace slime {

CtsOutbox::CtsOutbox(Link& link, EagerInbox& eager, ReceiveRequests& requests)
    : link_(link), eager_(eager), requests_(requests) {}

// The link's clock stands still between calls. So for the first receive that would be held, which
// may follow a long pause of the caller, the time is read.
bool CtsOutbox::may_hold(const ReceiveRequest& request) const {
  if (last_held_ - first_held_ == held_.size()) return false;
  for (uint32_t i = 0; i < request.count; ++i) {
    if (request.parts[i].capacity > eager_capacity_) return false;
  }
  const bool first = first_held_ == last_held_;
  return is_recent(first ? link_.context().devices.clock().now_ns() : link_.rails().clock().now_ns);
}

// A receive is announced only after all older ones, so held CTS go first.
void CtsOutbox::announce(ReceiveRequest& request) {
  if (is_streak() && may_hold(request)) {
    request.held = true;
    request.hold = last_held_;
    held_[last_held_++ % held_.size()] = &request;
    return;
  }
  const uint32_t rails = send_held();
  send(request);
  if (!std::exchange(posted_, true)) post(rails | uint32_t{1} << request.cts_rail);
}

uint32_t CtsOutbox::send_held() {
  uint32_t rails = 0;
  for (; first_held_ != last_held_; ++first_held_) {
    ReceiveRequest* const request = held_[first_held_ % held_.size()];
    if (request == nullptr) continue;  // withdrawn
    send(*request);
    rails |= uint32_t{1} << request->cts_rail;
  }
  return rails;
}

void CtsOutbox::post(uint32_t rails) {
  for (; rails != 0; rails &= rails - 1) {
    link_.rails().flush(static_cast<size_t>(std::countr_zero(rails)), false);
  }
}

void CtsOutbox::on_moved() {
  posted_ = false;
  if (first_held_ == last_held_ || link_.status() != Status::kOk) return;
  if (!is_streak() || !is_recent(link_.rails().clock().now_ns)) post(send_held());
}

void CtsOutbox::withdraw(ReceiveRequest& request) {
  if (!request.held) return;
  request.held = false;
  held_[request.hold % held_.size()] = nullptr;
  while (first_held_ != last_held_ && held_[first_held_ % held_.size()] == nullptr) ++first_held_;
}

void CtsOutbox::on_eager(uint64_t capacity) {
  eager_capacity_ = eager_streak_++ == 0 ? capacity : std::max(eager_capacity_, capacity);
  last_eager_ns_ = link_.rails().clock().now_ns;
}

// The sender waits for this CTS, which may be on the way already.
Status CtsOutbox::on_wanted(uint32_t cts) {
  if (static_cast<int32_t>(cts - next_) > 0) {
    return link_.context().fail_protocol("a question for a CTS that comes later");
  }
  wanted_ = cts + 1;
  return Status::kOk;
}

void CtsOutbox::send(ReceiveRequest& request) {
  SLIME_CHECK(request.active && !request.cts_open && request.cts_bytes == 0);
  request.held = false;
  request.sequence = next_++;
  write(request);
  submit(request, false);
}

// The record is made in its place: a copy would wait until the parts that it has just stored are
// written.
void CtsOutbox::write(ReceiveRequest& request) {
  const LinkRails& rails = link_.rails();
  const size_t channels = rails.count();
  std::byte* record = link_.memory().outbox() + request.index * cts_entry_bytes(channels);
  new (record) CtsHeader{request.sequence, request.index, static_cast<uint16_t>(request.generation),
                         request.count, eager_.consumed()};
  record += sizeof(CtsHeader);
  eager_.reported();
  for (uint32_t i = 0; i < request.count; ++i) {
    const ReceivePart& part = request.parts[i];
    const uint64_t offset = part.region ? part.region->offset_of(part.data) : 0;
    new (record) CtsReceive{reinterpret_cast<uint64_t>(part.data), offset, part.capacity, part.tag,
                            part.ordinal};
    record += sizeof(CtsReceive);
    for (size_t rail = 0; rail < channels; ++rail, record += sizeof(uint64_t)) {
      new (record) uint64_t{part.region ? rails[rail].remote_key(part.region) : 0};
    }
  }
  request.cts_bytes =
      static_cast<uint32_t>(sizeof(CtsHeader) + request.count * cts_receive_bytes(channels));
}

// A first copy needs no confirmation, because stripes and eager messages say what the sender has
// read. A CTS that is sent again needs one: the sender may have read the first copy, and the record
// must not change before the second copy has arrived.
void CtsOutbox::submit(ReceiveRequest& request, bool again) {
  LinkRails& rails = link_.rails();
  const size_t rail = rails.quickest_rail(request.cts_bytes);
  const size_t offset = request.index * cts_entry_bytes(rails.count());
  request.cts_rail = static_cast<uint8_t>(rail);
  request.cts_open = true;
  Work work = rails.write_of({offset, request.cts_bytes}, rail,
                             cts_immediate(request.index, request.sequence));
  work.unconfirmed = !again;
  rails.submit(rail, work, &requests_, request.index);
}

}  // namespace slime
