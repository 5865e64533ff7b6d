#include "peer/remote_flushes.h"

#include <utility>

#include "peer/rings.h"

namespace slime {

void RemoteFlushes::begin(PeerRequest& request) {
  for (const auto& remote : request.remotes) {
    if (!remote->address.in_device || (remote->address.rights & kRemoteRead) == 0) continue;
    for (size_t i = 0; i < rails_.count(); ++i) {
      if (request.has_used(i)) add({&request, remote.get(), i});
    }
  }
}

void RemoteFlushes::add(const Flush& flush) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(flushes_.size()));
    flushes_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  flushes_[index] = flush;
  flush.request->opened();
  if (!submit(index)) waiting_.push_back(index);
}

// False: it waits, for a place or for the peer to fence the rail as well.
bool RemoteFlushes::submit(uint32_t index) {
  const auto& [request, remote, i] = flushes_[index];
  const RailState state = rails_[i].life.state();
  if (state == RailState::kFenced) return false;
  if (state != RailState::kUp) return end(index), true;
  if (rails_.room_for_reads(i) == 0) return false;
  rails_.submit(i,
                {.local = rails_.memory().outbox() + Rings::kFlushRoom,
                 .local_key = rails_[i].local_key(rails_.memory().outbox_region()),
                 .remote_address = remote->address.base,
                 .remote_key = remote->keys[i],
                 .length = 1,
                 .opcode = Opcode::kRead},
                this, index);
  return true;
}

void RemoteFlushes::submit_waiting() {
  if (!waiting_.empty()) std::erase_if(waiting_, [this](uint32_t flush) { return submit(flush); });
}

bool RemoteFlushes::on_refused(uint32_t flush) {
  flushes_[flush].request->give_up(make_error(
      Status::kRemote, 0, "the peer has deregistered memory of a device that was being written"));
  end(flush);
  return true;
}

void RemoteFlushes::end(uint32_t flush) {
  std::exchange(flushes_[flush], {}).request->closed(0);
  free_.push_back(flush);
}

}  // namespace slime
