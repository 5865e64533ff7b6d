#include "collnet/comm/fallback.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slime {

bool Fallback::wanted(uint64_t now_ns) const {
  if (!idle()) return false;
  if (ring_.invited(Ring::Topic::kMove)) return true;
  // A rank that ends does not move any more.
  const bool may_return = ring_.rank() == 0 && !ring_.invited(Ring::Topic::kLeave);
  return std::ranges::any_of(attachments_,
                             [&](const auto& one) { return one->wants_move(may_return, now_ns); });
}

Result<void> Fallback::begin() {
  const size_t count = attachments_.size();
  for (const auto& attachment : attachments_) {
    const auto& trouble = attachment->worker().health().trouble();
    if (!trouble) continue;
    SLIME_WARN("%s: %s", attachment->name().c_str(), trouble->what.c_str());
    if (attachment->is_stuck()) return fail(*trouble);
  }
  announced_.assign(count * ring_.size(), Announcement{});
  for (size_t i = 0; i < count; ++i) {
    auto own = attachments_[i]->begin_move();
    if (!own) return fail(std::move(own.error()));
    own->operations = spread_.operations();
    announced_[count * ring_.rank() + i] = *own;
  }
  stage_ = Stage::kAnnouncing;
  return ring_.begin_gather(std::as_writable_bytes(std::span(announced_)),
                            count * sizeof(Announcement), Ring::Topic::kMove);
}

// One step of the gather that is under way; at its end, what follows it.
Result<void> Fallback::step(uint64_t now_ns) {
  Error error;
  const Status status = ring_.step(&error);
  if (status == Status::kAgain) return {};
  if (status != Status::kOk) return fail(std::move(error));
  if (stage_ == Stage::kAnnouncing) return compare_epochs();
  stage_ = Stage::kIdle;
  auto moved = move_all(now_ns);
  if (!moved) return moved;
  accept_switches(config_, attachments_);
  spread_anew();
  return check_distinct(attachments_);
}

// The workers are paused, so epochs do not change any more.
Result<void> Fallback::compare_epochs() {
  stage_ = Stage::kComparing;
  size_t slots = 0;
  for (const auto& attachment : attachments_) slots += attachment->job().slots;
  epochs_.assign(slots * ring_.size(), 0);
  auto own = std::span(epochs_).subspan(slots * ring_.rank(), slots);
  for (const auto& attachment : attachments_) {
    attachment->worker().epochs(own);
    own = own.subspan(attachment->job().slots);
  }
  return ring_.begin_gather(std::as_writable_bytes(std::span(epochs_)), slots * sizeof(uint32_t),
                            Ring::Topic::kMove);
}

// Each attachment gets its columns of the two tables.
Result<void> Fallback::move_all(uint64_t now_ns) {
  const uint32_t ranks = ring_.size();
  const size_t slots = epochs_.size() / ranks;
  size_t first = 0;
  for (size_t i = 0; i < attachments_.size(); ++i) {
    std::vector<Announcement> announced;
    std::vector<uint32_t> epochs;
    const uint32_t own_slots = attachments_[i]->job().slots;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      announced.push_back(announced_[rank * attachments_.size() + i]);
      const auto from = epochs_.begin() + static_cast<ptrdiff_t>(rank * slots + first);
      epochs.insert(epochs.end(), from, from + own_slots);
    }
    auto moved = attachments_[i]->move(announced, epochs, now_ns);
    if (!moved) return moved;
    first += own_slots;
  }
  return {};
}

// All ranks compute the same, since all have the same announcements.
void Fallback::spread_anew() {
  uint64_t first = spread_.operations();
  for (const Announcement& grant : announced_) first = std::max(first, grant.operations);
  Spread::PerSwitch weights{};
  const bool none = lost_switches(attachments_) == attachments_.size();
  const bool had_one = !std::exchange(none_left_, none);
  if (none && had_one && attachments_.size() > 1 && ring_.rank() == 0) {
    SLIME_WARN("%s: no switch is left: the ranks sum up for each other, slower",
               config_.name.c_str());
  }
  for (size_t i = 0; i < attachments_.size(); ++i) {
    const SwitchAttachment& attachment = *attachments_[i];
    weights[i] = none || attachment.on_switch() ? attachment.named().weight : 0;
  }
  spread_.change(first, weights);
}

}  // namespace slime
