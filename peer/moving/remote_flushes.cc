#include "peer/moving/remote_flushes.h"

#include <utility>

#include "peer/rings.h"

namespace slime {

// Of a long request that was given up, the regions of later parts may have no keys here.
void RemoteFlushes::begin(PeerRequest& request) {
  for (const auto& remote : request.remotes) {
    const RegionAddress& address = remote->address;
    if (!address.in_device || (address.rights & kRemoteRead) == 0) continue;
    for (size_t rail = 0; rail < rails_.count(); ++rail) {
      if (!remote->is_known_on(link_)) break;
      if (request.has_used(rail)) add({&request, remote.get(), rail});
    }
  }
}

// Memory is taken first, so that what follows cannot fail.
void RemoteFlushes::add(const Flush& flush) {
  if (free_.empty()) {
    flushes_.emplace_back();
    free_.reserve(flushes_.capacity());
    waiting_.reserve(flushes_.capacity());
    free_.push_back(static_cast<uint32_t>(flushes_.size() - 1));
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  flushes_[index] = flush;
  flush.request->flush_began();
  if (!submit(index)) waiting_.push_back(index);
}

// False: it waits, for a place or for the peer to fence the rail as well.
bool RemoteFlushes::submit(uint32_t index) {
  const auto& [request, remote, rail] = flushes_[index];
  const RailState state = rails_[rail].life.state();
  if (state == RailState::kFenced) return false;
  if (state != RailState::kUp || !remote->is_known_on(link_)) {
    end(index);
    return true;
  }
  if (rails_.room_for_reads(rail) == 0) return false;
  rails_.submit(rail,
                {.local = rails_.memory().outbox() + Rings::kFlushRoom,
                 .local_key = rails_[rail].local_key(rails_.memory().outbox_region()),
                 .remote_address = remote->address.base,
                 .remote_key = remote->keys[rail],
                 .length = 1,
                 .opcode = Opcode::kRead},
                this, index);
  return true;
}

void RemoteFlushes::submit_waiting() {
  if (!waiting_.empty()) std::erase_if(waiting_, [this](uint32_t flush) { return submit(flush); });
}

// The program of the peer has deregistered the region, so it does not wait for the bytes.
bool RemoteFlushes::on_refused(uint32_t index) {
  flushes_[index].remote->refuse();
  end(index);
  return true;
}

void RemoteFlushes::end(uint32_t index) {
  std::exchange(flushes_[index], {}).request->flush_ended();
  free_.push_back(index);
}

}  // namespace slime
