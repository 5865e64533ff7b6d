// What a rank tells the others before there is a session.
#pragma once

#include <slime/aggregation.h>

#include <span>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "engine/comm.h"

namespace slime::aggregation {

inline constexpr uint32_t kCardMagic = 0x43474753;  // "SGGC"; another byte order shows as garbage
inline constexpr uint16_t kCardVersion = 1;

struct Card {
  uint32_t magic = kCardMagic;
  uint16_t version = kCardVersion;
  uint8_t mode = 0;
  uint8_t well = 0;  // 0: this rank has failed already, and its log says why
  uint32_t rank = 0;
  uint32_t ranks = 0;
  Handle handle{};
};
static_assert(std::has_unique_object_representations_v<Card> && sizeof(Card) == 144);

// Whether `card` can be that of a rank of the group that `own` is of. `from` is for the sentence.
Result<void> check_member(const Card& card, const Card& own, const char* from);
// The handles of all, in the order of ranks, if every rank has come and is well.
Result<std::vector<Handle>> handles_of(std::span<const Card> cards, const Card& own);

}  // namespace slime::aggregation
