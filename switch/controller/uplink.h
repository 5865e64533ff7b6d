// A leaf's control connection to its parent. It carries the questions of TreeLeaf, one at a time,
// and never blocks.
//
// States: idle (no connection), connected without a question, or a question is under way. It
// connects when there is something to ask, and closes a connection that has had no question for
// idle_ns. If a connection fails that has answered before, the question is asked once more over a
// new one. If that fails too, the question has failed (TreeLeaf::on_failure), and nothing is asked
// for pause_ns.
//
// Invariant: where asked_ has a question, client_ has a connection.
// Thread rules: one thread, the controller's.
#pragma once

#include <memory>
#include <optional>

#include "settings/times.h"
#include "switch/controller/tree_leaf.h"
#include "switch/protocol/client.h"

namespace slime::net {

struct UplinkOptions {
  SocketAddress parent;  // its control channel
  SecretKey key;
  uint64_t timeout_ns = times::kUplinkAnswer;
  uint64_t idle_ns = times::kUplinkIdle;
  uint64_t pause_ns = 500'000'000;  // after a failure
};

class Uplink {
 public:
  Uplink(TreeLeaf& leaf, UplinkOptions options, const Clock& clock)
      : leaf_(leaf), options_(std::move(options)), clock_(clock) {}

  // For poll(2). Nothing is expected while no question is under way.
  int descriptor() const { return asked_ ? client_->descriptor() : -1; }
  short events() const { return asked_ ? client_->events() : short{0}; }
  int timeout_ms(int most) const;
  void run();                                                 // everything that can be done now
  void set_key(const SecretKey& key) { options_.key = key; }  // of connections from now on

 private:
  bool ask();
  bool post();
  bool finish();
  bool connect();
  void lose(const Error& error);

  TreeLeaf& leaf_;
  UplinkOptions options_;
  const Clock& clock_;
  std::unique_ptr<SwitchClient> client_;
  bool fresh_ = true;                      // no answer came over it yet
  std::optional<control::Message> asked_;  // then there is a client
  uint64_t used_ns_ = 0;
  uint64_t not_before_ns_ = 0;
};

}  // namespace slime::net
