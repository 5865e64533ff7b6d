// The way of the control works that are about rails: over a rail that is up, or over the lifeline.
// Without either they are lost at once, and their owners repeat them when usable() is true again.
//
// Thread: that of the link.
#pragma once

#include "link/lifeline/lifeline.h"

namespace slime {

class ControlPath {
 public:
  ControlPath(LinkRails& rails, Lifeline& lifeline) : rails_(rails), lifeline_(lifeline) {}

  bool usable() const { return rails_.up_count() > 0 || lifeline_.open(); }
  // There will be none any more.
  bool ended() const { return rails_.up_count() == 0 && !lifeline_.wanted(); }
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
  bool rails_gone() {
    if (!lifeline_.wanted()) return false;
    lifeline_.rails_gone(rails_.clock().now_ns);
    return true;
  }
  void rail_up() { lifeline_.rail_up(); }

 private:
  LinkRails& rails_;
  Lifeline& lifeline_;
};

}  // namespace slime
