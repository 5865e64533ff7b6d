// The death of a rail. The order of the steps is what keeps it safe:
//
//   1. This end fences the channel: nothing of the peer's reaches memory over it any more.
//   2. It takes in what the channel had confirmed to the peer, which will not send that again.
//   3. It tells the peer (kFenced), with a record of what has arrived, over a rail that lives.
//   4. When the peer has said so too, the user submits again what the rail still owed.
//
// So no late write of the dead rail can land in memory that has been reused. A notice that
// travelled on a rail which died is sent again. When no rail is left, the link fails.
//
// Thread: that of the link. State between calls is in the rails (LinkRail).
#pragma once

#include <string>

#include "engine/link/link_end.h"
#include "engine/link/link_rails.h"

namespace slime {

// Takes in what a channel reports, as Link does for each.
class CompletionSink {
 public:
  virtual Status handle_completion(size_t rail, const Done& done) = 0;

 protected:
  ~CompletionSink() = default;
};

class Failover {
 public:
  Failover(LinkRails& rails, LinkEnd& user, CompletionSink& sink)
      : rails_(rails), user_(user), sink_(sink) {}

  Status fail_rail(size_t rail, Error why);
  // The peer has fenced the present life of a rail that is no try to return.
  Status on_peer_fenced(size_t rail);
  // Rails whose end the peer has not answered, for a sentence about a time-out; the log has not
  // named them yet.
  std::string unanswered_deaths();

  // Steps of a life's end, for Rejoin too.
  Status fence(size_t rail);
  void send_notice(size_t rail);
  Status finish_fencing(size_t rail);  // kFenced -> kDown: both ends have fenced it

 private:
  Status fail_last_rail(size_t rail, const Error& why);
  void repeat_notices(size_t dead_rail);

  LinkRails& rails_;
  LinkEnd& user_;
  CompletionSink& sink_;
};

}  // namespace slime
