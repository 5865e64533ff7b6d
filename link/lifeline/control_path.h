// Sends control works about rails: over a rail that is up, or over the lifeline. Without either a
// work is lost at once.
//
// Thread: that of the link.
#pragma once

#include "link/lifeline/lifeline.h"

namespace slime {

class ControlPath {
 public:
  ControlPath(LinkRails& rails, Lifeline& lifeline) : rails_(rails), lifeline_(lifeline) {}

  bool usable() const { return rails_.up_count() > 0 || lifeline_.open(); }
  // No rail is up, and the link cannot live without one.
  bool ended() const { return rails_.up_count() == 0 && !lifeline_.enabled(); }
  void send(const ControlWork& control) {
    if (rails_.up_count() > 0) {
      rails_.submit_control(rails_.quickest_rail(control.piece.bytes), control);
    } else if (lifeline_.open()) {
      lifeline_.send(control);
    } else {
      control.owner->on_lost(control.part);
    }
  }
  // The link has no rail any more, or one again. False: it cannot live without one.
  bool use_lifeline() {
    if (!lifeline_.enabled()) return false;
    lifeline_.begin_need(rails_.clock().polled_ns);
    return true;
  }
  void leave_lifeline() { lifeline_.end_need(); }

 private:
  LinkRails& rails_;
  Lifeline& lifeline_;
};

}  // namespace slime
