// What members of a session tell each other: what passes the checks can be worked with.
#include "collnet/comm/comm_blobs.h"

#include "collnet/worker/worker.h"
#include "test/fuzz/support/target.h"

namespace slime {

class Nowhere final : public Datagrams {
 public:
  void send(const Destination&, std::span<const std::byte>) override {}
};

static void fill(std::span<const std::byte> from, void* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

SLIME_FUZZ_TARGET(comm_blobs, input) {
  std::vector<CommMember> members(input.below(4) + 1);
  for (CommMember& member : members) fill(input.bytes(sizeof member), &member);
  const auto addresses = addresses_of(members);
  if (addresses) {
    FUZZ_CHECK(addresses->rails >= 1 && addresses->rails <= sap::kMaxRails);
    FUZZ_CHECK(addresses->all.size() == addresses->rails * members.size());
    for (const CommMember& member : members) {
      FUZZ_CHECK(member.lanes >= Worker::kLeastLanes && member.rails >= addresses->rails);
    }
  }
  if (const auto named = switches_of(members)) {
    FUZZ_CHECK(named->size() == members.size());
    for (const auto& one : *named) {
      FUZZ_CHECK(!one.empty() && one.size() <= kMaxSwitches);
      FUZZ_CHECK(one.size() == (*named)[0].size());
    }
  }
  Announcement grant;
  fill(input.bytes(sizeof grant), static_cast<void*>(&grant));
  if (!check_announcement(grant) || grant.from == Announcement::From::kNone || grant.slots > 64)
    return;
  Nowhere nowhere;
  const auto worker = Worker::open(
      {.route = {.job = grant.job,
                 .generation = grant.generation,
                 .token = grant.token,
                 .shards = grant.from == Announcement::From::kRanks ? 1u : grant.shards,
                 .rails = addresses ? addresses->rails : 1},
       .contributors = static_cast<uint32_t>(members.size()),
       .slots = grant.slots,
       .lanes = grant.lanes,
       .formats = grant.formats,
       .round_trip = {}},
      nowhere);
  FUZZ_CHECK(worker);
}

}  // namespace slime
