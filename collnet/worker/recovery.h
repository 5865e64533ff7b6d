// How a job goes on elsewhere: without its switch, or on it again.
//
// A slot's workers are at most one round apart, and a worker that is ahead has kept the result that
// the others lack. So all pause, tell each other their epochs, and resume: a worker that lacks a
// result asks one that has it; all other rounds begin again in the new generation. The shard that
// serves a slot now has no contribution of it yet, so nothing is summed twice. The workers agree on
// exponents again: if damage on the way gave two workers different ones, every check fails.
//
// Without a switch the workers are switches to each other: the same packets, slot machine and sums,
// so the same bits, and 2 (n - 1) / n times the bytes in each direction, as in a ring.
#pragma once

#include <optional>
#include <span>

#include "collnet/worker/job_route.h"

namespace slime {

// The newest result that a slot has accepted: a peer may need it.
class KeptResult {
 public:
  // `packet`: memory for a full packet, which stays the caller's.
  void use(std::byte* packet) { packet_ = packet; }
  void keep(const sap::Header& result, std::span<const std::byte> payload);
  // The packet for a peer, as one of the job where that runs now. Empty: nothing was kept.
  std::span<const std::byte> packet_for(const JobRoute& route, uint32_t contributors);

 private:
  std::byte* packet_ = nullptr;
  std::optional<sap::Header> header_;
};

// The first rank that has accepted the result of `epoch` on this slot, by the epochs of all.
std::optional<uint32_t> rank_ahead(std::span<const uint32_t> epochs, uint32_t slots, uint32_t slot,
                                   uint32_t epoch);

}  // namespace slime
