// Which named regions the peer has: programs ask, and engines answer.
//
// States of a question: waiting; asked, until the last region of its answer has come; or it ends
// before, and its answer is dropped. Answers come in the order of the questions.
//
// Few questions are asked at once, and answers are sent one region at a time, when no other record
// waits: so two ends that answer each other at the same time leave room for the other's records.
// Memory: the questions, and for each NamedRegions::kMost regions at most. Thread: that of the
// peer's link.
#pragma once

#include <deque>
#include <memory>

#include "link/link.h"
#include "peer/moving/peer_request.h"
#include "peer/named_regions.h"
#include "peer/records.h"

namespace slime {

class Directory {
 public:
  // `peer` is at the other end.
  Directory(Link& link, Records& records, const NamedRegions& regions, const EngineId& peer)
      : link_(link), records_(records), regions_(regions), peer_(peer) {}

  static constexpr size_t kMostAsked = 4;

  void ask(std::shared_ptr<PeerRequest> request);  // which has a place for the answer
  Status on_record(const Record& record);
  void move(uint64_t now_ns);  // deadlines too
  bool idle() const { return open_ == 0 && answers_.empty(); }
  void end_all(const Error& why, uint64_t now_ns);
  // The link goes: those that have not ended.
  Requests take_all();

 private:
  struct Entry {
    uint32_t left = 0;       // that follow it
    uint32_t is_region = 0;  // 0: there are none
    std::array<char, NamedRegions::kMostNameBytes + 1> name = {};
    RegionBlob blob = {};
  };

  // What is left of the answer to a question of the peer.
  using Answer = std::deque<NamedRegion>;

  void answer_one();
  Status take(const Entry& entry);
  template <typename Ends>
  void end_those(uint64_t now_ns, Ends ends);

  Link& link_;
  Records& records_;
  const NamedRegions& regions_;
  const EngineId peer_;
  std::deque<std::shared_ptr<PeerRequest>> waiting_;
  std::deque<std::shared_ptr<PeerRequest>> asked_;  // nullptr: it has ended
  size_t open_ = 0;                                 // of both
  std::deque<Answer> answers_;                      // an empty one: that there are none
};

}  // namespace slime
