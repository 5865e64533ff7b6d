#include "collnet/worker/recovery.h"

#include <cstring>

#include "switch/protocol/check.h"
#include "switch/protocol/slot_machine.h"

namespace slime {

void KeptResult::keep(const sap::Header& result, std::span<const std::byte> payload) {
  header_ = result;
  header_->type = sap::Type::kResultAgain;
  header_->flags |= sap::flag::kFallback;
  std::memcpy(packet_ + sap::kHeaderBytes, payload.data(), payload.size());
}

// The result may be of an earlier job or generation. Its check has a salt for each contributor,
// and the salt names job, generation and token: so those of the new ones replace those of the old.
std::span<const std::byte> KeptResult::packet_for(const JobRoute& route, uint32_t contributors) {
  if (!header_) return {};
  const uint32_t old_salt = sap::salt(*header_);
  header_->job = route.job;
  header_->generation = route.generation;
  header_->token = route.token;
  header_->check += contributors * (sap::salt(*header_) - old_salt);
  sap::encode(*header_, packet_);
  return {packet_, sap::kHeaderBytes + 4 * size_t{header_->lanes}};
}

std::optional<uint32_t> rank_ahead(std::span<const uint32_t> epochs, uint32_t slots, uint32_t slot,
                                   uint32_t epoch) {
  for (size_t at = slot; at < epochs.size(); at += slots) {
    if (sap::rounds_ahead(epochs[at], epoch) > 0) return static_cast<uint32_t>(at / slots);
  }
  return std::nullopt;
}

}  // namespace slime
