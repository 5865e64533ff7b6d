// Rank 0's port: connections until they have said hello, by the rules of base/net/visitors.h.
#pragma once

#include <poll.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/net/visitors.h"
#include "tools/perf/wire.h"

namespace slime::perf {

struct Caller {
  Wire wire;
  nlohmann::json hello;
};

class HelloPort final : private VisitorPort {
 public:
  explicit HelloPort(Fd listener) : listener_(std::move(listener)) {}

  void add_to(std::vector<pollfd>* waited) const;
  // Accepts and reads: who has said hello since the last call.
  std::vector<Caller> look();
  // Nobody has looked for that long: no visitor is late by it.
  void excuse(uint64_t away_ns);

  // One more whom its hello has shown to be a stranger.
  void note_stranger();
  std::string summary_of_strangers() const { return strangers_.summary(); }

 private:
  struct Visitor {
    Wire wire;
    SocketAddress from;
    uint64_t since_ns;
  };

  std::vector<Visit> visits() const override;
  void drop_visit(size_t index) override;
  Status admit(Accepted accepted, Error* error) override;
  bool stays(Visitor* visitor);

  const Fd listener_;
  std::deque<Visitor> visitors_;  // oldest first
  std::vector<Caller> callers_;
  bool paused_ = false;  // poll would report a listener that cannot accept without end
  StrangerLog strangers_;
};

}  // namespace slime::perf
