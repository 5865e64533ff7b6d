// Requests that begin when all have ended which the peer was given before.
//
// States of one: waiting, then given to the caller of take(). Thread: that of the peer's link.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "peer/moving/peer_request.h"

namespace slime {

class Barriers {
 public:
  void add(std::shared_ptr<PeerRequest> request, Requests before) {
    waiting_.push_back({std::move(request), std::move(before)});
  }
  bool idle() const { return waiting_.empty(); }
  void add_open(Requests* to) const {
    for (const Barrier& one : waiting_) to->push_back(one.request);
  }
  // Those that may begin, or whose deadline has passed.
  Requests take(uint64_t now_ns) {
    Requests taken;
    std::erase_if(waiting_, [&](Barrier& one) {
      std::erase_if(one.before, [](const auto& request) { return request->done(); });
      if (!one.before.empty() && now_ns < one.request->due_ns()) return false;
      taken.push_back(std::move(one.request));
      return true;
    });
    return taken;
  }

 private:
  struct Barrier {
    std::shared_ptr<PeerRequest> request;
    Requests before;
  };

  std::vector<Barrier> waiting_;
};

}  // namespace slime
