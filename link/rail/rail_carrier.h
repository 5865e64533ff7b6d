// Whether the port of a rail has a carrier, had one, and got it back. Some interfaces work and
// never report a carrier, so only one that was there can be lost.
//
// Thread: that of the link.
#pragma once

#include <utility>

#include "transports/rail.h"

namespace slime {

class RailCarrier {
 public:
  explicit RailCarrier(Rail& rail) : rail_(rail) { (void)lacks(); }

  // Asks the port.
  bool lacks() {
    const Carrier now = rail_.carrier();
    had_ |= now == Carrier::kUp;
    return had_ && now == Carrier::kDown;
  }
  // The same, and notes what has changed. `up`: the rail is.
  void look(bool up) {
    const bool had = had_;
    const bool before = std::exchange(lost_, lacks());
    // The first carrier of a rail that started without one is a return, too.
    const bool came = had ? before && !lost_ : had_;
    returned_ |= !up && came;
  }
  bool lost() const { return lost_; }                             // at the last look
  bool take_return() { return std::exchange(returned_, false); }  // while the rail was not up

 private:
  Rail& rail_;
  bool had_ = false;
  bool lost_ = false;
  bool returned_ = false;
};

}  // namespace slime
