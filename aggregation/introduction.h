// The record that each rank gives to all others before there is a session, and its exchange. Its
// layout is part of the wire format.
#pragma once

#include <slime/aggregation.h>

#include <span>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "message/comm.h"
#include "rendezvous/rendezvous.h"
#include "settings/settings.h"

namespace slime::aggregation {

inline constexpr uint32_t kIntroductionMagic =
    0x43474753;  // "SGGC"; another byte order shows as garbage
inline constexpr uint16_t kIntroductionVersion = 1;

struct Introduction {
  uint32_t magic = kIntroductionMagic;
  uint16_t version = kIntroductionVersion;
  uint8_t mode = 0;
  uint8_t ready = 0;  // 0: this rank has failed already, and its log says why
  uint32_t rank = 0;
  uint32_t ranks = 0;
  Handle handle{};
};
static_assert(std::has_unique_object_representations_v<Introduction> &&
              sizeof(Introduction) == 144);

// Whether `introduction` can be that of a rank of the group that `own` is of. `from` is for the
// sentence.
Result<void> check_member(const Introduction& introduction, const Introduction& own,
                          const char* from);
// The handles of all, in the order of ranks, if every rank has come and is ready.
Result<std::vector<Handle>> handles_of(std::span<const Introduction> introductions,
                                       const Introduction& own);

// Fails if the options name no means for the exchange, or two.
Result<void> check_means(const Options& options);
// All ranks get the introductions of all, by the means that the options name.
Result<std::vector<Introduction>> exchange(const Options& options, const Settings& settings,
                                           const Introduction& own);
// The same at a rendezvous: rank 0 listens at `where`, the others go there.
Result<std::vector<Introduction>> meet(const rendezvous::Terms& terms, const HostPort& where,
                                       const Introduction& own);

}  // namespace slime::aggregation
