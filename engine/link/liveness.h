// Whether the rails of a link live: probes, silence, and carriers. It finds the rails that have
// died without telling, and leaves it to Failover to end them.
//
// Only polled time counts (LinkClock), so an end that was stopped does not take its own absence
// for the death of a rail. A rail is given up only while another one is better.
//
// Thread: that of the link. State between calls is in the rails (RailSigns).
#pragma once

#include <optional>

#include "engine/link/link_end.h"
#include "engine/link/link_rails.h"

namespace slime {

class RailLiveness {
 public:
  RailLiveness(LinkRails& rails, LinkEnd& user) : rails_(rails), user_(user) {}

  // kPlain asks the peer's NIC; kWithBytes also shows what the rail delivers; kAsk asks the peer's
  // process.
  enum class Probe : uint8_t { kPlain, kWithBytes, kAsk };
  void probe(size_t rail, Probe probe);
  void answer(size_t rail);
  // Whether what this rail has carried has arrived, or nothing can stop it any more. If that is not
  // known, the rail is asked.
  bool has_delivered(size_t rail);
  // Sends probes behind unconfirmed works.
  void prove_rails();
  // Why a rail with confirmed works counts as dead; nullopt: it does not, or not yet.
  std::optional<Error> judge_silence(size_t rail);
  bool carriers_due() const { return rails_.clock().now_ns >= carriers_due_ns_; }
  // True: some rail that is up has a carrier, so those that have lost theirs are to be given up.
  bool look_at_carriers();

 private:
  bool others_live(size_t rail);

  LinkRails& rails_;
  LinkEnd& user_;
  uint64_t carriers_due_ns_ = 0;
  bool warned_of_carriers_ = false;
};

}  // namespace slime
