#include "collnet/worker/slot.h"

#include <cstring>

#include "switch/protocol/check.h"

namespace slime {

void KeptResult::keep(const sap::Header& result, std::span<const std::byte> payload) {
  header_ = result;
  header_->type = sap::Type::kResultAgain;
  header_->flags |= sap::flag::kFallback;
  std::memcpy(packet_ + sap::kHeaderBytes, payload.data(), payload.size());
}

// The result may be of an earlier job or generation. Its check has the salt times the factor of
// each contributor, and the salt names job, generation and token: so the new salt replaces the old
// one.
std::span<const std::byte> KeptResult::packet_for(const JobRoute& route,
                                                  const sap::Contributors& all) {
  if (!header_) return {};
  const uint32_t old_salt = sap::salt(*header_);
  header_->job = route.job;
  header_->generation = route.generation;
  header_->token = route.token;
  header_->check += all.factors * (sap::salt(*header_) - old_salt);
  sap::encode(*header_, packet_);
  return {packet_, sap::kHeaderBytes + 4 * size_t{header_->lanes}};
}

std::unique_ptr<std::byte[]> give_memory(std::span<Slot> slots, uint32_t lanes) {
  const auto rounded = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const size_t packet_bytes = rounded(sap::kHeaderBytes + 4 * size_t{lanes});
  const size_t lanes_bytes = rounded(4 * size_t{lanes});
  const size_t flags_bytes = rounded(4 * size_t{flag_lanes_for(most_floats(lanes))});
  const size_t slot_bytes = 2 * packet_bytes + flags_bytes + lanes_bytes;
  auto memory = std::make_unique<std::byte[]>(slots.size() * slot_bytes + lanes_bytes);
  std::byte* at = memory.get() + lanes_bytes;
  for (Slot& slot : slots) {
    slot.packet = at;
    slot.kept.use(at + packet_bytes);
    slot.flags = at + 2 * packet_bytes;
    slot.earlier = slot.flags + flags_bytes;
    slot.finite = memory.get();
    at += slot_bytes;
  }
  return memory;
}

std::optional<uint32_t> rank_ahead(std::span<const uint32_t> epochs, uint32_t slots, uint32_t slot,
                                   uint32_t epoch) {
  for (size_t at = slot; at < epochs.size(); at += slots) {
    if (sap::rounds_ahead(epochs[at], epoch) > 0) return static_cast<uint32_t>(at / slots);
  }
  return std::nullopt;
}

}  // namespace slime
