#include "collnet/worker/switch_health.h"

namespace slime {

void SwitchHealth::clear_trouble() {
  trouble_.reset();
  silent_rail_.reset();
  lost_rails_ = 0;
}

// The packet may have been late only; or this process was, and found it in its socket.
void SwitchHealth::heard_on(uint32_t rail) {
  heard_[rail] = time_.ns();
  lost_rails_ &= ~(1u << rail);
  if (silent_rail_ == rail) clear_trouble();
}

void SwitchHealth::restart(uint64_t now_ns) {
  time_.observe(now_ns);
  heard_.fill(time_.ns());
}

void SwitchHealth::reset(uint64_t now_ns) {
  clear_trouble();
  restart(now_ns);
}

void SwitchHealth::report(Error error) {
  if (!trouble_) trouble_ = std::move(error);
}

// A rail is lost, and not the switch, where packets came on other rails lately: from a switch that
// has just died the last packets came at about the same time on all rails. A rail without open
// rounds gets only answers to questions, and is not silent in this sense.
void SwitchHealth::report_silence(uint32_t rail, uint32_t silent, uint32_t rails, Error error) {
  const uint64_t lately_ns = std::max(silent_ns_ / 2, 2 * suspect_ns_);
  uint32_t alive = 0;
  for (uint32_t other = 0; other < rails; ++other) {
    if (time_.ns() - heard_[other] < lately_ns) alive |= 1u << other;
  }
  lost_rails_ = alive != 0 ? silent & ~alive : 0;
  trouble_ = std::move(error);
  silent_rail_ = rail;
}

}  // namespace slime
