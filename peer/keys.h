// How an end of a link gets the keys of the peer's regions: by records.
//
//   asks    kWantKeys  region, nonce           -->   is there such a region?
//                       <--   kKeys  of that question: keys for each rail, or a refusal
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "peer/handle_table.h"
#include "peer/records.h"
#include "peer/region.h"

namespace slime {

using Regions = HandleTable<Region>;

// What a peer names.
inline std::shared_ptr<Region> region_of(const Regions& regions, uint64_t handle, uint64_t nonce) {
  return regions.find(handle, [nonce](const Region& region) { return region.nonce == nonce; });
}

// States of a question: asked, until its answer comes; answers come in their order.
// Thread: that of the link.
class Keys {
 public:
  // Questions that are open at once.
  static constexpr size_t kMostAsked = 16;

  Keys(Link& link, Records& records, const Regions& regions)
      : link_(link), records_(records), regions_(regions) {}

  // Asks, unless it was done. False: too many questions are open; try again.
  bool want(const std::shared_ptr<Remote>& remote);
  Status on_record(const Record& record);

 private:
  struct Question {
    uint64_t region = 0, nonce = 0;
  };
  struct Answer {
    uint64_t region = 0;
    uint32_t known = 0, count = 0;
    std::array<uint64_t, kMaxRails> keys = {};
  };
  static_assert(sizeof(Answer) <= Ring::kOneSlotBytes);

  Status answer(const Question& question);
  Status take(const Answer& answer);

  Link& link_;
  Records& records_;
  const Regions& regions_;
  std::deque<std::shared_ptr<Remote>> asked_;
};

}  // namespace slime
