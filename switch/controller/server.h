// The control channel's end at the switch: accepts connections and lets the controller answer.
//
// It never blocks: the program polls descriptor() for at most timeout_ms() and calls run(), which
// also ends late connections and expires leases.
//
// States: the listener is watched, or paused for a while, because a descriptor or memory is missing
// or all places are taken by connections that have just come. Meanwhile new connections wait in the
// kernel's backlog.
//
// Invariants: connections_ has each connection by its descriptor; visitors_ names those of them
// that have proven nothing, oldest first. There are at most VisitorPort::kPlaces visitors and
// max_connections others. When all of the latter are there, one more gets the place of another:
//
//   * of the oldest connection of the tenant that has the most, if that tenant has as many as the
//     newcomer's even then. So each tenant has an equal share when all want more;
//   * for an operator, of that connection in any case. Operators never lose places.
//
// Thread rules: one thread, the controller's.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "switch/controller/connection.h"

namespace slime::net {

class ControlServer final : private VisitorPort, private ConnectionPlaces {
 public:
  static Result<std::unique_ptr<ControlServer>> open(Controller& controller, ServerOptions options);

  SocketAddress address() const { return address_; }  // with the port that the kernel chose
  int descriptor() const { return poller_.get(); }    // readable: run() has something to do
  int timeout_ms() const;                             // until a deadline or a lease; at least 1
  // Does everything that can be done now, and ends late connections.
  void run();
  const KeyRing& keys() const { return options_.keys; }
  // Ends connections whose key is no longer their tenant's; their clients connect again.
  void set_keys(KeyRing keys);
  size_t connections() const { return connections_.size(); }

 private:
  ControlServer(Controller& controller, ServerOptions options)
      : controller_(controller), options_(std::move(options)) {}

  void accept_all();
  std::optional<std::string> make_place(const Caller& caller) override;
  void reset(int fd, const std::string& why);
  std::vector<Visit> visits() const override;
  void drop_visit(size_t index) override;
  Status admit(Accepted accepted, Error* error) override;
  void advance(int fd);
  void end_late(uint64_t now_ns);
  bool watch(int fd, uint32_t events, bool known) const;
  void remove(int fd);
  void pause_listener(uint64_t pause_ns);
  void resume_listener();

  Controller& controller_;
  ServerOptions options_;
  SocketAddress address_;
  Fd poller_, listener_;
  uint64_t paused_until_ns_ = 0;  // 0: the listener is watched
  std::map<int, std::unique_ptr<Connection>> connections_;
  std::vector<int> visitors_;  // those that have not proven themselves; oldest first
  StrangerLog strangers_;
};

}  // namespace slime::net
