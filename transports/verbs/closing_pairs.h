// The queue pairs of a closed channel that was ready. A queue pair does not tell its peer that it
// is destroyed, so each sends a message without bytes first. The channel's hello may be on its way
// too.
#pragma once

#include <memory>
#include <vector>

#include "transports/verbs/nic.h"
#include "transports/verbs/queue_pair.h"
#include "transports/verbs/wire.h"

namespace slime::verbs {

class ClosingPairs {
 public:
  ClosingPairs(CompletionQueue completions, std::unique_ptr<Registered<Hellos>> hellos,
               std::vector<QueuePair> pairs);
  // What the peer has sent meanwhile is reported to nobody.
  bool is_done();

 private:
  CompletionQueue completions_;  // outlives the queue pairs
  std::unique_ptr<Registered<Hellos>> hellos_;
  std::vector<QueuePair> pairs_;
  size_t left_ = 0;  // messages that have not arrived
};

}  // namespace slime::verbs
