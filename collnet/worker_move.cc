// How a job goes on elsewhere: without its switch, or on it again.
//
// A slot's workers are at most one round apart, and whoever is ahead has kept the result that the
// others lack. So all pause, tell each other their epochs, and resume: who lacks a result asks a
// worker that has it; all other rounds begin again in the new generation. The shard that
// serves a slot now has no contribution of it yet, so nothing is summed twice. The workers agree on
// exponents again: if damage on the way gave two workers different ones, every check fails.
//
// Without a switch the workers are switches to each other: the same packets, slot machine and sums,
// so the same bits, and 2 (n - 1) / n times the bytes in each direction, as in a ring.
#include <cstring>

#include "collnet/worker.h"

namespace slime {

void Worker::epochs(std::span<uint32_t> by_slot) const {
  for (uint32_t index = 0; index < options_.slots; ++index) by_slot[index] = slots_[index].epoch;
}

// Packets that came during the pause were dropped, so silence is counted from now on.
void Worker::go_on(uint64_t now_ns) {
  paused_ = false;
  attention_.look(now_ns);
  heard_at_.fill(attention_.ns());
}

void Worker::resume(const Move& move, uint64_t now_ns) {
  job_ = move.job;
  generation_ = move.generation;
  token_ = move.token;
  direct_ = move.direct;
  child_ = direct_ ? static_cast<uint8_t>(options_.rank) : options_.child;
  shards_ = move.shards;
  rails_ = move.rails;
  trouble_.reset();
  silent_rail_.reset();
  lost_rails_ = 0;
  last_arrived_.reset();
  suspected_.reset();
  go_on(now_ns);
  for (uint32_t index = 0; index < options_.slots; ++index) {
    Slot& slot = slots_[index];
    slot.holder = slot.waiting ? holder_of(index, move.epochs) : kNobody;
    if (slot.holder == kNobody) {
      forget_exponents(slot);
      if (slot.waiting) begin_round(index, now_ns);
      continue;
    }
    slot.resent = true;
    start_timers(slot, now_ns);
    transmit(index, now_ns);
  }
}

void Worker::forget_exponents(Slot& slot) { slot.agreed = slot.steady = false; }

uint32_t Worker::holder_of(uint32_t index, std::span<const uint32_t> epochs) const {
  for (uint32_t rank = 0; rank < options_.contributors; ++rank) {
    const uint32_t theirs = epochs[size_t{rank} * options_.slots + index];
    if (sap::rounds_ahead(theirs, slots_[index].epoch) > 0) return rank;
  }
  return kNobody;
}

void Worker::keep(const sap::Header& header, std::span<const std::byte> payload) {
  sap::Header kept = header;
  kept.type = sap::Type::kResultAgain;
  kept.flags |= sap::flag::kFallback;
  std::byte* const to = kept_of(header.slot);
  sap::encode(kept, to);
  std::memcpy(to + sap::kHeaderBytes, payload.data(), payload.size());
  slots_[header.slot].kept_bytes = static_cast<uint32_t>(sap::kHeaderBytes + payload.size());
}

// The result may be of an earlier job or generation. Its check has a salt for each contributor.
void Worker::answer_peer(const sap::Header& query) {
  const Slot& slot = slots_[query.slot];
  const bool ours = slot.kept_bytes > 0 && sap::next_epoch(query.epoch) == slot.epoch;
  if (!ours || query.child >= options_.contributors) return;
  const std::span<std::byte> kept(kept_of(query.slot), slot.kept_bytes);
  sap::Header header;
  (void)sap::decode(kept, &header);
  const uint32_t old_salt = sap::salt(header);
  header.job = job_;
  header.generation = generation_;
  header.token = token_;
  header.check += options_.contributors * (sap::salt(header) - old_salt);
  sap::encode(header, kept.data());
  network_.send({Destination::Kind::kRank, query.child, 0}, kept);
}

Destination Worker::served_by(uint32_t index) const {
  if (direct_) return {Destination::Kind::kRank, index % options_.contributors, 0};
  return {Destination::Kind::kShard, index % shards_, rail_of(index)};
}

void Worker::query(uint32_t index, const Destination& to, uint8_t flags) {
  const sap::Header header{.type = sap::Type::kQuery,
                           .flags = flags,
                           .job = job_,
                           .generation = generation_,
                           .child = flags ? static_cast<uint8_t>(options_.rank) : child_,
                           .token = token_,
                           .slot = static_cast<uint16_t>(index),
                           .epoch = slots_[index].epoch};
  std::byte packet[sap::kHeaderBytes];
  sap::encode(header, packet);
  network_.send(to, packet);
}

}  // namespace slime
