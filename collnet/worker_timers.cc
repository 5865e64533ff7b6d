// Loss, silence and refusal: when a worker sends again, asks who is missing, and gives up.
#include <algorithm>

#include "collnet/worker.h"

namespace slime {

void Worker::check_timers(uint64_t now_ns) {
  uint64_t next = UINT64_MAX;
  for (uint32_t index = 0; index < options_.slots && !failed_; ++index) {
    Slot& slot = slots_[index];
    if (!slot.waiting) continue;
    if (now_ns >= slot.deadline_ns) on_timeout(index, now_ns);
    next = std::min(next, slot.deadline_ns);
  }
  next_check_ns_ = next;
}

void Worker::on_timeout(uint32_t index, uint64_t now_ns) {
  Slot& slot = slots_[index];
  if (now_ns - slot.first_sent_ns >= options_.dead_ns) return fail_job(silence(slot, now_ns));
  ++counters_.retransmitted;
  slot.resent = true;
  transmit(index, now_ns);
  if (now_ns >= slot.query_ns) ask(index, now_ns);
}

void Worker::ask(uint32_t index, uint64_t now_ns) {
  Slot& slot = slots_[index];
  slot.query_ns = now_ns + options_.suspect_ns;
  ++counters_.queries;
  const sap::Header header{.type = sap::Type::kQuery,
                           .job = options_.job,
                           .generation = options_.generation,
                           .child = options_.child,
                           .slot = static_cast<uint16_t>(index),
                           .epoch = slot.epoch};
  std::byte packet[sap::kHeaderBytes];
  sap::encode(header, packet);
  network_.send(index % options_.shards, packet);
}

void Worker::on_status(const sap::Header& header, uint32_t arrived) {
  const Slot& slot = slots_[header.slot];
  if (!slot.waiting || header.epoch != slot.epoch) return;
  // One report per silence: many slots wait for the same rank.
  if (last_arrived_ == arrived) return;
  last_arrived_ = arrived;
  suspicion_ = missing_ranks(arrived);
}

std::string Worker::missing_ranks(uint32_t arrived) const {
  std::string text;
  for (uint32_t rank = 0; rank < std::min(options_.contributors, sap::kMaxChildren); ++rank) {
    if (arrived >> rank & 1) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(rank);
  }
  return text;
}

Error Worker::silence(const Slot& slot, uint64_t now_ns) const {
  const double seconds = static_cast<double>(now_ns - slot.first_sent_ns) / 1e9;
  if (!last_arrived_) {
    return make_error(Status::kTimeout, 0,
                      "in-network allreduce: the switch has not answered for %.1f s (job %u, "
                      "generation %u, %u retransmissions in this round); check that it runs and "
                      "that UDP reaches it",
                      seconds, options_.job, options_.generation, slot.attempts - 1);
  }
  return make_error(Status::kRemote, 0,
                    "in-network allreduce: rank %s has not contributed for %.1f s; look at its log "
                    "first",
                    missing_ranks(*last_arrived_).c_str(), seconds);
}

void Worker::on_reject(const sap::Header& header, uint32_t reason) {
  const Slot& slot = slots_[header.slot];
  if (!slot.waiting || header.epoch != slot.epoch || header.generation != options_.generation) {
    ++counters_.foreign;  // perhaps forged: an answer to nothing that this worker has sent
    return;
  }
  const char* why = "no known reason";
  switch (static_cast<sap::Rejection>(reason)) {
    case sap::Rejection::kNoJob:
      why = "the job has ended there: its lease ran out, or the switch was started again";
      break;
    case sap::Rejection::kGeneration:
      why = "the job was fenced and goes on in another generation";
      break;
    case sap::Rejection::kSource:
      why = "our address is not the one that the job was made with; is there a NAT between?";
      break;
    case sap::Rejection::kSlot:
      why = "the slot is not the job's, or not on that port";
      break;
    case sap::Rejection::kShape:
      why =
          "another rank contributed other lanes, type or operation: do all ranks call the same "
          "collectives in the same order?";
      break;
  }
  fail_job(make_error(Status::kRemote, static_cast<int>(reason),
                      "in-network allreduce: the switch refused job %u, generation %u, slot %u "
                      "(reason %u): %s",
                      options_.job, options_.generation, header.slot, reason, why));
}

void Worker::fail_job(Error error) {
  failed_ = true;
  failure_ = std::move(error);
}

}  // namespace slime
