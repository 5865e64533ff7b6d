// Makes what a request has written into device memory of the peer visible to that device, before
// the request ends and the peer's program is told.
//
// A NIC confirms a write when it has the bytes; they may still be on their way over PCIe to the
// device. A read of that memory over the same rail comes behind them (PCIe Base Specification,
// transaction ordering: a read does not pass a posted write), so it ends when they are there. One
// byte of each such region is read over each rail that has carried bytes of the request. A region
// that the peer may not read is not flushed.
//
// States of a flush: free, waiting (for a place among the rail's reads, or for a fence), reading.
// While it waits or reads, its request is not done and stays with its mover, so the pointers hold.
// It ends also when the rail has died and both ends have fenced it: that takes a round trip of the
// link, which is taken to be longer than the way of the bytes over PCIe.
// What makes reuse safe: a flush is free when its read has ended, so no work names it any more.
// Memory: as many as were ever open at once, on the link. Thread: that of the link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "link/link_rails.h"
#include "peer/moving/peer_request.h"

namespace slime {

class RemoteFlushes final : public WorkOwner {
 public:
  // `link`: its number, among all of this peer.
  RemoteFlushes(LinkRails& rails, uint64_t link) : rails_(rails), link_(link) {}

  // No piece of this request moves any more. The request is open again if there is something to
  // flush.
  void begin(PeerRequest& request);
  // Those that wait, where there are places now.
  void submit_waiting();
  bool is_of(const WorkOwner* owner, uint32_t part, const PeerRequest& request) const {
    return owner == this && flushes_[part].request == &request;
  }
  bool wait_for(size_t rail, const PeerRequest& request) const {
    return std::ranges::any_of(waiting_, [&](uint32_t flush) {
      return flushes_[flush].rail == rail && flushes_[flush].request == &request;
    });
  }

 private:
  struct Flush {
    PeerRequest* request = nullptr;  // nullptr: it is free
    Remote* remote = nullptr;
    size_t rail = 0;
  };

  void on_done(uint32_t index) override { end(index); }
  void on_lost(uint32_t index) override { end(index); }
  bool on_refused(uint32_t index) override;
  void add(const Flush& flush);
  bool submit(uint32_t index);
  void end(uint32_t index);

  LinkRails& rails_;
  const uint64_t link_;
  std::vector<Flush> flushes_;
  std::vector<uint32_t> free_, waiting_;
};

}  // namespace slime
