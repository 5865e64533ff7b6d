// Counts the messages (or receives) of each tag that this end of a link has posted. The n-th send
// of a tag belongs to the n-th receive of that tag, so both ends pair alike in any order of
// arrival. Only tags that the caller uses get a counter, so a peer that invents tags costs no
// memory.
//
// Thread: that of the comm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace slime {

class TagCounters {
 public:
  // Allocates only at the first use of a tag; tags are ranks, so there are few.
  uint32_t& of(int32_t tag) {
    if (last_ == nullptr || last_tag_ != tag) {
      last_ = &counters_[tag];  // nodes of unordered_map do not move
      last_tag_ = tag;
    }
    return *last_;
  }

  // The counter of a tag that the peer named; 0 if this end has never used the tag.
  uint32_t peek(int32_t tag) const {
    if (last_ != nullptr && last_tag_ == tag) return *last_;
    const auto found = counters_.find(tag);
    return found == counters_.end() ? 0 : found->second;
  }

  size_t size() const { return counters_.size(); }

 private:
  std::unordered_map<int32_t, uint32_t> counters_;
  int32_t last_tag_ = 0;
  uint32_t* last_ = nullptr;
};

}  // namespace slime
