#include "link/peer_watch.h"

#include <algorithm>

#include "base/log.h"

namespace slime {

PeerWatch::PeerWatch(LinkRails& rails, RailLiveness& liveness)
    : rails_(rails),
      liveness_(liveness),
      patience_ns_(seconds_to_ns(rails.context().settings().peer_timeout) / 4),
      limit_s_(rails.context().settings().answer_timeout != 0
                   ? rails.context().settings().answer_timeout
                   : rails.context().settings().request_timeout),
      limit_name_(rails.context().settings().answer_timeout != 0 ? "NCCL_SLIME_ANSWER_TIMEOUT"
                                                                 : "NCCL_SLIME_REQUEST_TIMEOUT") {}

std::optional<Error> PeerWatch::look() {
  if (rails_.count() < 2 || rails_.up_count() == 0) return std::nullopt;
  const uint64_t now_ns = rails_.clock().polled_ns;
  uint64_t heard_ns = 0;
  for (const LinkRail& rail : rails_.all()) heard_ns = std::max(heard_ns, rail.signs.heard_ns());
  if (heard_ns > asked_ns_) be_quiet();
  if (now_ns >= ask_again_ns_) ask();
  if (asked_ns_ == 0) return std::nullopt;
  const uint64_t silent_ns = now_ns - asked_ns_;
  if (!warned_ && silent_ns > 3 * patience_ns_) {
    warn();
    warned_ = true;
  }
  if (silent_ns < seconds_to_ns(limit_s_)) return std::nullopt;
  return make_error(Status::kTimeout, 0,
                    "its process has not answered for %.0f s (%s) although "
                    "its host acknowledges; it is stopped, or it has ended and a process that it "
                    "forked still holds its connections",
                    limit_s_, limit_name_);
}

// Asks once in a while, and never over a rail on which an earlier question may have been lost. The
// first choice is the rail that a small work would take. A rail without room has works on it that
// the peer's process must confirm, which asks as well.
void PeerWatch::ask() {
  const uint64_t now_ns = rails_.clock().polled_ns;
  ask_again_ns_ = now_ns + patience_ns_;
  if (asked_ns_ == 0) asked_ns_ = now_ns;
  const size_t first = rails_.quickest_rail(0);
  for (size_t i = 0; i < rails_.count(); ++i) {
    const size_t rail = (first + i) % rails_.count();
    if (!rails_[rail].up() || rails_[rail].signs.probing() || rails_[rail].queue.room() == 0)
      continue;
    return liveness_.probe(rail, RailLiveness::Probe::kAsk);
  }
}

void PeerWatch::be_quiet() {
  if (warned_) {
    const LinkContext& context = rails_.context();
    SLIME_INFO("peer %s, device %s: its process answers again", context.peer.c_str(),
               context.device_name());
  }
  asked_ns_ = 0;
  warned_ = false;
}

void PeerWatch::warn() const {
  const LinkContext& context = rails_.context();
  SLIME_WARN(
      "peer %s, device %s: its process has not answered for %.0f s although its host acknowledges; "
      "see whether it is stopped (a debugger, a checkpoint), or has ended while a process that it "
      "forked lives on; the link fails after %.0f s (%s)",
      context.peer.c_str(), context.device_name(), context.settings().peer_timeout, limit_s_,
      limit_name_);
}

}  // namespace slime
