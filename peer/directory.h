// Which named regions the peer has: programs ask, and engines answer.
//
// States of a question: asked, until the last region of its answer has come, or its deadline; the
// answer of one that has ended is dropped. Answers come in the order of the questions. Memory: the
// questions, and for each NamedRegions::kMost regions at most. Thread: that of the peer's link.
#pragma once

#include <deque>
#include <memory>

#include "link/link.h"
#include "peer/named_regions.h"
#include "peer/peer_request.h"
#include "peer/records.h"

namespace slime {

class Directory {
 public:
  // `peer` is at the other end.
  Directory(Link& link, Records& records, const NamedRegions& regions, const EngineId& peer)
      : link_(link), records_(records), regions_(regions), peer_(peer) {}

  void ask(std::shared_ptr<PeerRequest> request);  // which has a place for the answer
  Status on_record(const Record& record);
  void expire(uint64_t now_ns);
  bool idle() const { return open_ == 0; }
  // The link goes: those that have not ended.
  Requests take_all();

 private:
  struct Entry {
    uint32_t left = 0;       // that follow it
    uint32_t is_region = 0;  // 0: there are none
    std::array<char, NamedRegions::kMostNameBytes + 1> name = {};
    RegionBlob blob = {};
  };

  void answer();
  Status take(const Entry& entry);

  Link& link_;
  Records& records_;
  const NamedRegions& regions_;
  const EngineId peer_;
  std::deque<std::shared_ptr<PeerRequest>> asked_;  // nullptr: it has ended
  size_t open_ = 0;                                 // of these
};

}  // namespace slime
