// Makes what a request has written into device memory of the peer visible to that device, before
// the request ends and the peer's program is told.
//
// A NIC confirms a write when it has the bytes; they may still be on their way over PCIe to the
// device. A read of that memory over the same rail comes behind them, and pushes them there. So
// one byte of each such region is read over each rail that has carried bytes of the request. A
// region that the peer may not read is not flushed.
//
// States of a flush: free, waiting (for a place among the rail's reads, or for a fence), reading.
// It counts as an open transfer of its request while it waits or reads. It ends also when the rail
// has died and both ends have fenced it, which takes longer than the bytes. What makes reuse safe:
// a flush is free when its read has ended, so no work names it any more. Memory: as many as were
// ever open at once, on the link. Thread: that of the link.
#pragma once

#include <cstdint>
#include <vector>

#include "link/link_rails.h"
#include "peer/peer_request.h"

namespace slime {

class RemoteFlushes final : public WorkOwner {
 public:
  explicit RemoteFlushes(LinkRails& rails) : rails_(rails) {}

  // No piece of this request, a write, moves any more. It is open again where there is something to
  // flush.
  void begin(PeerRequest& request);
  // Those that wait, where there are places now.
  void submit_waiting();
  bool is_of(const WorkOwner* owner, uint32_t part, const PeerRequest& request) const {
    return owner == this && flushes_[part].request == &request;
  }

 private:
  struct Flush {
    PeerRequest* request = nullptr;  // nullptr: it is free
    const Remote* remote = nullptr;
    size_t rail = 0;
  };

  void on_done(uint32_t flush) override { end(flush); }
  void on_lost(uint32_t flush) override { end(flush); }
  bool on_refused(uint32_t flush) override;
  void add(const Flush& flush);
  bool submit(uint32_t flush);
  void end(uint32_t flush);

  LinkRails& rails_;
  std::vector<Flush> flushes_;
  std::vector<uint32_t> free_, waiting_;
};

}  // namespace slime
