// How many messages (or receives) of each tag a comm has seen. The n-th send of a tag belongs to
// the n-th receive of that tag, so both ends agree on the pairing whatever the order of arrival.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace slime {

class TagCounters {
 public:
  // Allocates at the first use of a tag only; tags are ranks, so there are few.
  uint32_t& of(int32_t tag) {
    if (last_ == nullptr || last_tag_ != tag) {
      last_ = &counters_[tag];  // nodes of unordered_map do not move
      last_tag_ = tag;
    }
    return *last_;
  }

 private:
  std::unordered_map<int32_t, uint32_t> counters_;
  int32_t last_tag_ = 0;
  uint32_t* last_ = nullptr;
};

}  // namespace slime
