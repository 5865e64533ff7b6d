// What a Link does when a rail dies. The order of the steps is what keeps it safe: see link.h.
#include <slime/log.h>

#include <array>

#include "engine/link.h"

namespace slime {

Status Link::fail_rail(size_t i, const Error& why) {
  LinkRail& rail = rails_[i];
  rail.up = false;
  --up_count_;
  rail.channel->fence();
  if (const Status status = take_last_arrivals(i); status != Status::kOk) return status;
  rail.queue.clear();
  if (up_count_ == 0) {
    return fail(make_error(Status::kRemote, why.code, "rail %s: %s%s",
                           rail.rail->caps().name.c_str(), why.what.c_str(),
                           rails_.size() > 1 ? " (it was the last rail of the link)" : ""));
  }
  SLIME_WARN("peer %s, device %s: rail %s is down, %zu of %zu rails carry on: %s", peer_.c_str(),
             device_.properties().name.c_str(), rail.rail->caps().name.c_str(), up_count_,
             rails_.size(), why.what.c_str());
  send_notice(i);
  resend_notices(i);
  return rail.peer_fenced ? settle(i) : Status::kOk;
}

// What the peer was told has arrived counts as arrived here too: it will not send it again.
Status Link::take_last_arrivals(size_t i) {
  std::array<Done, 64> done;
  for (;;) {
    size_t count = 0;
    const Status polled = rails_[i].channel->poll(done, &count);
    for (size_t k = 0; k < count; ++k) {
      if (const Status status = handle(i, done[k]); status != Status::kOk) return status;
    }
    if (count == 0 || polled != Status::kOk) return Status::kOk;
  }
}

void Link::send_notice(size_t i) {
  LinkRail& rail = rails_[i];
  Work work;
  rail.notice_rail = pick(0);
  rail.notice_sent = false;
  user_.fence_record(i, rail.notice_rail, &work);
  submit_control(rail.notice_rail, ControlOp::kFenced, static_cast<uint32_t>(i), work);
}

// A notice that travelled on the rail that just died may be lost. Repeating it is harmless.
void Link::resend_notices(size_t dead_rail) {
  for (size_t i = 0; i < rails_.size(); ++i) {
    const LinkRail& rail = rails_[i];
    if (i != dead_rail && !rail.up && !rail.notice_sent && rail.notice_rail == dead_rail) {
      send_notice(i);
    }
  }
}

Status Link::on_peer_fenced(uint32_t i) {
  if (i >= rails_.size()) return fail_protocol("a fence of a rail that the link does not have");
  LinkRail& rail = rails_[i];
  if (rail.peer_fenced) return Status::kOk;  // repeated
  rail.peer_fenced = true;
  if (!rail.up) return settle(i);
  return fail_rail(i, make_error(Status::kRemote, 0, "the peer reports that its end failed"));
}

Status Link::settle(size_t i) {
  if (rails_[i].settled) return Status::kOk;
  rails_[i].settled = true;
  return user_.on_fenced(i);
}

// A rail on which nothing completes while others do is dead too, though nobody was told. Only an
// answer to a probe sent after the silence began shows that: other completions may be old ones,
// found late because this process was busy elsewhere. An answer means that the peer reads its
// rails; its answers may come a little later on one rail than on another, so the suspect is given
// as much time again.
Status Link::watch(size_t i) {
  LinkRail& rail = rails_[i];
  if (up_count_ < 2 || now_ns_ - rail.busy_since_ns < silence_ns_ / 2) return Status::kOk;
  for (size_t k = 0; k < rails_.size(); ++k) {
    if (k == i || !rails_[k].up) continue;
    const LinkRail& other = rails_[k];
    const bool alive = !other.probing && other.probed_ns > rail.busy_since_ns + silence_ns_ / 2;
    if (alive && rail.suspect_since_ns == 0) rail.suspect_since_ns = now_ns_;
    if (!alive && !other.probing && other.queue.room() > 0) probe(k);
  }
  const bool silent =
      rail.suspect_since_ns != 0 && now_ns_ - rail.suspect_since_ns >= silence_ns_ / 2;
  if (!silent) return Status::kOk;
  return fail_rail(i, make_error(Status::kTimeout, 0,
                                 "nothing completed for %.1f s while other rails carried on; check "
                                 "this path (cable, switch port, routing, firewall)",
                                 static_cast<double>(now_ns_ - rail.busy_since_ns) * 1e-9));
}

}  // namespace slime
