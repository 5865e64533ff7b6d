#include "aggregation/card.h"

#include "aggregation/mode.h"

namespace slime::aggregation {

Result<void> check_member(const Card& card, const Card& own, const char* from) {
  if (card.magic != kCardMagic || card.version != kCardVersion) {
    return fail(make_error(Status::kRemote, 0,
                           "%s does not speak this version of the library (magic %08x, version %u; "
                           "wanted %08x, %u): do all ranks run the same program?",
                           from, card.magic, card.version, kCardMagic, kCardVersion));
  }
  if (card.ranks != own.ranks || card.rank >= own.ranks) {
    return fail(make_error(Status::kInvalid, 0,
                           "%s says that it is rank %u of %u, and rank %u says there are %u; "
                           "give all ranks the same number of ranks",
                           from, card.rank, card.ranks, own.rank, own.ranks));
  }
  if (card.mode != own.mode) {
    return fail(make_error(Status::kInvalid, 0,
                           "%s, rank %u, runs in mode %s, and rank %u in %s; give all ranks the "
                           "same mode",
                           from, card.rank, name_of(static_cast<Mode>(card.mode)), own.rank,
                           name_of(static_cast<Mode>(own.mode))));
  }
  return {};
}

Result<std::vector<Handle>> handles_of(std::span<const Card> cards, const Card& own) {
  std::vector<Handle> handles;
  std::string unwell;
  for (uint32_t rank = 0; rank < cards.size(); ++rank) {
    const Card& card = cards[rank];
    const std::string from = "what came for rank " + std::to_string(rank);
    auto member = check_member(card, own, from.c_str());
    if (!member) return fail(std::move(member.error()));
    if (card.rank != rank) {
      return fail(make_error(Status::kInvalid, 0,
                             "%s is of rank %u: do two ranks have one number, or does the "
                             "all-gather not keep the order of ranks?",
                             from.c_str(), card.rank));
    }
    if (!card.well) unwell += (unwell.empty() ? "" : ", ") + std::to_string(rank);
    handles.push_back(card.handle);
  }
  if (unwell.empty()) return handles;
  return fail(make_error(Status::kRemote, 0,
                         "rank %s failed before the ranks met, so all fail; its error says why",
                         unwell.c_str()));
}

}  // namespace slime::aggregation
