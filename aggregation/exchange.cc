#include "aggregation/exchange.h"

#include <algorithm>
#include <utility>

#include "aggregation/rendezvous.h"
#include "base/net/resolve.h"

namespace slime::aggregation {
namespace {

Result<std::vector<Card>> gather(const AllGather& all_gather, const Card& own) {
  std::vector<Card> cards(own.ranks);
  std::ranges::fill(std::as_writable_bytes(std::span(cards)), std::byte{0});  // no card as it is
  if (all_gather(&own, sizeof own, cards.data())) return cards;
  return fail(make_error(Status::kRemote, 0,
                         "rank %u of %u: the all-gather that Options::all_gather names failed",
                         own.rank, own.ranks));
}

Result<std::vector<Card>> meet(const Options& options, const Settings& settings, const Card& own) {
  auto address = resolve(options.rendezvous, 0, "Options::rendezvous, where rank 0 listens");
  if (!address) return fail(std::move(address.error()));
  if (address->port() == 0) {
    return fail(make_error(Status::kInvalid, 0,
                           "Options::rendezvous: \"%s\" has no port; give it as host:port",
                           options.rendezvous.c_str()));
  }
  Meeting meeting;
  meeting.address = *address;
  meeting.deadline_ns = meeting.clock.now_ns() + seconds_to_ns(settings.connect_timeout);
  meeting.patience_ns = seconds_to_ns(settings.handshake_timeout);
  if (!settings.switch_key_file.empty()) {
    auto key = SecretKey::read_file(settings.switch_key_file);
    if (!key) return fail(std::move(key.error()));
    meeting.key = *key;
  }
  return own.rank == 0 ? host_meeting(meeting, own) : join_meeting(meeting, own);
}

}  // namespace

Result<void> check_means(const Options& options) {
  const bool both = !options.rendezvous.empty() && options.all_gather;
  const bool none = options.rendezvous.empty() && !options.all_gather;
  if (!both && (!none || options.ranks == 1)) return {};
  return fail(make_error(Status::kInvalid, 0,
                         "%u ranks find each other by Options::rendezvous or by "
                         "Options::all_gather: give one of them, not %s",
                         options.ranks, both ? "both" : "neither"));
}

Result<std::vector<Card>> exchange(const Options& options, const Settings& settings,
                                   const Card& own) {
  if (options.all_gather) return gather(options.all_gather, own);
  if (own.ranks == 1) return std::vector<Card>{own};
  return meet(options, settings, own);
}

}  // namespace slime::aggregation
