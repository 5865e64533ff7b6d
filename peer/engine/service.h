// A thread of an engine. It moves what no caller moves: it dials, and posts and polls the links of
// its peers that have something to do. The first thread of an engine also takes peers that connect,
// answers questions, ends what no peer moves and calls the program's functions.
//
// It sleeps on the listeners and on its pollers of the rails (transports/sleeper.h) until a peer is
// due. A peer is due when a poller names its link, when somebody calls attend(), and when it said
// so itself (Peer::serve). All peers are looked at besides, several times in
// NCCL_SLIME_PEER_TIMEOUT and every kLongestLookNs at least: no poller names a link that is silent.
//
// Threads: attend(), wake() and look_before() from any, the rest from the one that opened the
// engine.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "peer/engine/step_pace.h"
#include "peer/peer.h"
#include "transports/sleeper.h"

namespace slime {

// What the service needs of the engine.
class ServiceHost {
 public:
  virtual ~ServiceHost() = default;
  virtual std::vector<std::shared_ptr<Peer>> peers(uint32_t thread) = 0;
  virtual std::shared_ptr<Peer> peer_with_tag(uint64_t tag) = 0;
  // Takes what has come to the listener, and has the threads of the peers attend to them.
  // `came`: there were some. True: others are in their handshakes.
  virtual bool accept(bool* came) = 0;
  // Answers those who only ask. True: there were some.
  virtual bool answer_callers() = 0;
  // Calls the program's functions for what has happened.
  virtual void call_back() = 0;
  // Ends requests that no peer moves and that are overdue. Returns when the next one is.
  virtual uint64_t end_overdue(uint64_t now_ns) = 0;
};

class Service {
 public:
  static constexpr uint32_t kTurns = 8;         // of busy peers, for one look at pollers
  static constexpr uint64_t kSoonNs = 500'000;  // Peer::Next::kSoon
  static constexpr uint64_t kNowAndThenNs = 10'000'000;
  static constexpr uint64_t kLongestLookNs = 5'000'000'000;

  // The first `thread` is 0. `listeners` become readable when somebody connects to it. The pollers
  // outlive the service. `peer_timeout_s`: NCCL_SLIME_PEER_TIMEOUT.
  static Result<std::unique_ptr<Service>> open(ServiceHost& host, uint32_t thread,
                                               std::span<const int> listeners,
                                               const std::vector<Poller*>& pollers,
                                               double peer_timeout_s);
  Result<void> start();  // once, when the host has the service
  void stop();           // returns when the thread has ended
  ~Service() { stop(); }

  void attend(std::shared_ptr<Peer> peer);
  void wake() { sleeper_->wake(); }  // there is something to call back
  // By that time the service looks at all its peers, and the first one calls end_overdue().
  void look_before(uint64_t at_ns);

 private:
  struct Due {
    std::shared_ptr<Peer> peer;
    uint64_t at_ns = 0;
    StepPace set_up;
  };

  Service(ServiceHost& host, uint32_t index, std::unique_ptr<Sleeper> sleeper,
          std::vector<Poller*> pollers, uint64_t look_every_ns)
      : host_(host),
        index_(index),
        sleeper_(std::move(sleeper)),
        pollers_(std::move(pollers)),
        look_every_ns_(look_every_ns) {}
  void run();
  void look(uint64_t now_ns);
  void look_at_listeners(uint64_t now_ns);
  bool is_first() const { return index_ == 0; }
  void take_named();
  void add(std::shared_ptr<Peer> peer);
  uint64_t serve_due(uint64_t now_ns);

  ServiceHost& host_;
  const uint32_t index_;  // among the engine's threads
  const std::unique_ptr<Sleeper> sleeper_;
  const std::vector<Poller*> pollers_;
  const uint64_t look_every_ns_;
  std::mutex mutex_;  // of attended_
  std::vector<std::shared_ptr<Peer>> attended_;
  std::atomic<bool> ending_ = false;
  std::atomic<uint64_t> look_ns_ = 0;
  // Of the thread.
  std::unordered_map<Peer*, Due> due_;
  uint64_t accept_ns_ = 0;
  StepPace greeting_;    // runs while peers are in their handshakes
  bool called_ = false;  // a listener was readable after the last sleep
  std::thread thread_;
};

}  // namespace slime
