// A leaf's control connection to its parent: asks what the controller wants to know, one question
// at a time, and connects only while there is something to ask. Waits for nothing by itself.
//
// Thread rules: one thread, the controller's.
#pragma once

#include <memory>
#include <optional>

#include "switch/controller/controller.h"
#include "switch/protocol/client.h"

namespace slime::net {

struct UplinkOptions {
  SocketAddress parent;  // its control channel
  SecretKey key;
  uint64_t timeout_ns = 3'000'000'000;  // to connect, and of a question
  uint64_t idle_ns = 5'000'000'000;     // without a question: the connection is closed
  uint64_t pause_ns = 500'000'000;      // after a failure
};

class Uplink {
 public:
  Uplink(Controller& controller, UplinkOptions options, const Clock& clock)
      : controller_(controller), options_(std::move(options)), clock_(clock) {}

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

  Controller& controller_;
  UplinkOptions options_;
  const Clock& clock_;
  std::unique_ptr<SwitchClient> client_;
  bool fresh_ = true;                      // no answer came over it yet
  std::optional<control::Message> asked_;  // then there is a client
  uint64_t used_ns_ = 0;
  uint64_t not_before_ns_ = 0;
};

}  // namespace slime::net
