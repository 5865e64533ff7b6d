#include "transports/verbs/channel_watch.h"

#include <utility>

#include "transports/verbs/rail.h"

namespace slime::verbs {
namespace {

constexpr uint64_t kPauseNs = 20'000'000;

}  // namespace

ChannelWatch::ChannelWatch(VerbsRail& rail, std::shared_ptr<const Port> port)
    : rail_(rail), port_(std::move(port)), changes_(port_->changes) {}

// A port that went down and came back is not a change: the NIC sends again what was lost.
Result<void> ChannelWatch::check_port() {
  if (auto healthy = rail_.nic().check_health(); !healthy) return healthy;
  const std::string change = find_new_change(*port_, &changes_);
  if (change.empty()) return {};
  return fail(make_error(Status::kSystem, 0, "%s; a new channel takes what the port has now",
                         change.c_str()));
}

// Works that are under way need no keep-alive and no deadline of ours: the NIC gives up by itself
// when the peer's NIC is silent (NCCL_SLIME_IB_TIMEOUT), and a peer that is stopped may keep us
// waiting. Lanes take turns with keep-alives, as each may take another path.
Result<void> ChannelWatch::look(Lanes& lanes, uint64_t now_ns) {
  due_ns_ = now_ns + kPauseNs;
  if (auto sound = check_port(); !sound) return sound;
  if (completed_ || last_completed_ns_ == 0) last_completed_ns_ = now_ns;
  completed_ = false;
  const uint64_t pause_ns = seconds_to_ns(rail_.settings().peer_timeout) / 4;
  const bool quiet = lanes.outstanding() == 0 && !keeping_alive_;
  if (quiet && now_ns - last_completed_ns_ > pause_ns) {
    keeping_alive_ = lanes.post_keep_alive(kept_alive_++ % lanes.size()) == 0;
    last_completed_ns_ = now_ns;
  }
  return {};
}

}  // namespace slime::verbs
