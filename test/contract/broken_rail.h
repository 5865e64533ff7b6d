// Rails that break one promise each, over rails that keep them: to show that the checks of this
// directory can fail.
#pragma once

#include <memory>

#include "test/contract/world.h"

namespace slime::contract {

enum class Fault {
  kNone,
  kSpoilsAByte,    // the last byte of a work that arrived
  kWritesBeyond,   // one byte behind a work's target
  kWritesOutside,  // one byte in front of the registered range
  kSpoilsLater,    // a byte of a work that was reported before
  kRepeatsSent,
  kRepeatsArrived,
  kLosesSent,
  kLosesArrived,
  kMakesUpImmediate,
  kMakesUpCookie,
  kMiscountsBytes,
  kSwapsArrivals,       // on an ordered rail
  kSendsLate,           // kSent at once, and reads the memory after it
  kConfirmsItself,      // kSent with confirm_delivery before the peer reported
  kWritesThroughFence,  // as soon as the end is fenced
  kReportsAfterFence,   // arrivals without end
  kForgetsAtFence,      // arrivals that were confirmed and not reported yet
  kIgnoresKeys,         // writes whatever it is asked to
  kHidesFailure,        // the receiver refuses, and says nothing
  kForgetsWhatItSent,   // works that were kSent are lost when the channel closes
  kNamesNobody,         // the failure does not say who the peer was
  kReportsSilentWrites,
  kHidesRefusal,  // kSent instead
  kLosesRefusal,
  kFailsAfterRefusal,  // the channel does
};

// Right's channels are broken (or left's, for faults of a sender).
std::unique_ptr<World> make_broken_world(std::unique_ptr<World> inner, Fault fault);

}  // namespace slime::contract
