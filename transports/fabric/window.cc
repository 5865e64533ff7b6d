#include "transports/fabric/window.h"

#include <algorithm>

#include "base/check.h"
#include "transports/channel_common.h"

namespace slime::fabric {

Window::Window(uint32_t places, bool confirmed)
    : confirmed_(confirmed), places_(places), done_(places) {
  ambiguous_.reserve(places);
  unseen_.reserve(places);
}

void* Window::add(const Work& work) {
  SLIME_CHECK(room() > 0);
  Place& place = at(next_++);
  ++added_;
  place.cookie = work.cookie;
  place.immediate = work.immediate;
  place.unconfirmed = work.unconfirmed;
  place.opcode = work.opcode;
  place.refused = false;
  place.complete = place.reported = place.done = place.taken = false;
  return &place.context;
}

void Window::forget_newest() {
  SLIME_CHECK(under_way() > 0 && !at(next_ - 1).complete);
  --next_;
  --added_;
}

void Window::withhold_newest(size_t count) {
  SLIME_CHECK(count <= under_way());
  for (; count > 0; --count) at(next_ - static_cast<uint32_t>(count)).done = true;
}

uint32_t Window::position_of(const Place& place) const {
  const auto index = static_cast<uint32_t>(&place - places_.data());
  return oldest_ + ((index - oldest_) & static_cast<uint32_t>(places_.size() - 1));
}

Window::Place* Window::find(void* context) {
  const auto address = reinterpret_cast<uintptr_t>(context);
  const auto first = reinterpret_cast<uintptr_t>(places_.data());
  const size_t index = (address - first) / sizeof(Place);
  if (address < first || index >= places_.size()) return nullptr;
  Place& place = places_[index];
  return position_of(place) - oldest_ < under_way() && !place.complete ? &place : nullptr;
}

bool Window::complete(void* context) {
  Place* const place = find(context);
  if (place == nullptr) return false;
  place->complete = true;
  ++completed_;
  const uint32_t position = position_of(*place);
  if (place->silent() && !place->refused) unseen_.push_back(position);
  settle(position);
  return true;
}

bool Window::refuse(void* context) {
  Place* const place = find(context);
  if (place == nullptr || place->opcode == Opcode::kWriteWithImmediate) return false;
  place->refused = place->reported = true;
  return complete(context);
}

// `reported` says of a silent write that it is visible.
bool Window::is_done(const Place& place) const {
  const bool waits = place.silent() || (confirmed_ && !place.unconfirmed);
  return place.complete && (place.reported || !waits);
}

// After each change of a place.
void Window::settle(uint32_t position) {
  Place& place = at(position);
  if (is_done(place) && !place.done) {
    place.done = true;
    SLIME_CHECK(done_end_ - taken_ < done_.size());
    done_[done_end_++ & (done_.size() - 1)] = position;
  }
  const auto is_free = [this](const Place& oldest) {
    return oldest.taken && (!confirmed_ || oldest.reported);
  };
  while (oldest_ != next_ && is_free(at(oldest_))) ++oldest_;
}

void Window::show(size_t count) {
  SLIME_CHECK(count <= unseen_.size());
  for (const uint32_t position : std::span(unseen_).first(count)) {
    at(position).reported = true;
    settle(position);
  }
  unseen_.erase(unseen_.begin(), unseen_.begin() + static_cast<ptrdiff_t>(count));
}

bool Window::report(std::span<const uint32_t> immediates) {
  return std::ranges::all_of(immediates, [this](uint32_t one) { return report_one(one); });
}

bool Window::report_one(uint32_t immediate) {
  uint32_t waiting = 0, found = 0;
  for (uint32_t position = oldest_; position != next_; ++position) {
    const Place& place = at(position);
    if (place.immediate != immediate || place.reported || place.silent()) continue;
    found = position;
    ++waiting;
  }
  if (waiting == 1) {
    at(found).reported = true;
    settle(found);
    return true;
  }
  ambiguous_.push_back(immediate);
  const auto reports = static_cast<uint32_t>(std::ranges::count(ambiguous_, immediate));
  if (reports < waiting) return true;
  if (reports > waiting) return false;
  std::erase(ambiguous_, immediate);
  for (uint32_t position = oldest_; position != next_; ++position) {
    Place& place = at(position);
    if (place.immediate == immediate && !place.silent()) place.reported = true;
  }
  for (uint32_t position = oldest_; position != next_; ++position) {
    if (at(position).immediate == immediate) settle(position);
  }
  return true;
}

size_t Window::take(std::span<Done> done) {
  size_t count = 0;
  for (; taken_ != done_end_ && count < done.size(); ++count) {
    const uint32_t position = done_[taken_++ & (done_.size() - 1)];
    Place& place = at(position);
    done[count] = place.refused ? slime::refused(place.cookie) : slime::sent(place.cookie);
    place.taken = true;
    settle(position);
  }
  return count;
}

std::vector<uint32_t> Window::incomplete() const {
  std::vector<uint32_t> immediates;
  for (uint32_t position = oldest_; position != next_; ++position) {
    if (!at(position).complete) immediates.push_back(at(position).immediate);
  }
  return immediates;
}

}  // namespace slime::fabric
