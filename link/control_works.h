// The control works of one rail that are queued or in flight.
//
// States of a place: free, or taken from begin() to end() or clear(). begin() gives the place a new
// generation. end() counts only for a taken place with the same generation, so a completion that
// comes twice, or after the place was reused, changes nothing.
//
// Thread: that of the link.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include "link/records.h"

namespace slime {

// Places of one rail. At most four control works about one rail are under way: request, joined and
// retry of RailJoin, and the kFenceNotice. Those of all other rails may travel over this rail at
// once.
inline constexpr uint32_t kControlRoom = 192;
static_assert(kControlRoom >= 4 * (kMaxRails - 1) + 16 && kControlRoom % 64 == 0);

class ControlWorks {
 public:
  struct Place {
    uint16_t index = 0;
    uint32_t generation = 0;
  };

  // Takes a place for a work of so many bytes. nullopt: no place is free.
  std::optional<Place> begin(uint32_t bytes) {
    for (uint32_t word = 0; word < open_.size(); ++word) {
      if (~open_[word] == 0) continue;
      const auto bit = static_cast<uint32_t>(std::countr_one(open_[word]));
      open_[word] |= uint64_t{1} << bit;
      const auto index = static_cast<uint16_t>(word * 64 + bit);
      bytes_[index] = bytes;
      return Place{index, ++generation_[index]};
    }
    return std::nullopt;
  }

  // Frees the place and returns the bytes of its work. nullopt: this work is not in flight.
  std::optional<uint32_t> end(const Place& place) {
    if (place.index >= kControlRoom || generation_[place.index] != place.generation) {
      return std::nullopt;
    }
    const uint64_t bit = uint64_t{1} << place.index % 64;
    uint64_t& word = open_[place.index / 64];
    if ((word & bit) == 0) return std::nullopt;
    word &= ~bit;
    return bytes_[place.index];
  }

  void clear() { open_ = {}; }  // the rail died

 private:
  std::array<uint64_t, kControlRoom / 64> open_ = {};  // a bit per place
  std::array<uint32_t, kControlRoom> generation_ = {};
  std::array<uint32_t, kControlRoom> bytes_ = {};
};

}  // namespace slime
