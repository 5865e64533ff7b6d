// GET /metrics for Prometheus and GET /healthz, by libmicrohttpd. It runs in the daemon's own loop,
// without threads (which is why it is not prometheus-cpp: that brings its own), and bounds
// connections, their memory and their time. It is given connections by the rules of
// base/net/visitors.h: libmicrohttpd itself would accept no connection while all places are taken.
//
// States: the listener is watched, or paused (paused_until_ns_), because no connection can be
// accepted now. Invariants: each visitor is one connection of libmicrohttpd, found by the number of
// its descriptor; ended() removes it when libmicrohttpd closes that. visitors_ holds descriptors of
// its own, so shutting one down never meets a connection that got the same number later. Thread
// rules: one thread, the daemon's.
#pragma once

#include <microhttpd.h>

#include <deque>
#include <memory>

#include "base/net/visitors.h"
#include "switch/controller/controller.h"

namespace slime::switchd {

class MetricsHttp final : private VisitorPort {
 public:
  static Result<std::unique_ptr<MetricsHttp>> open(const SocketAddress& address,
                                                   const net::Controller& controller);
  MetricsHttp(const MetricsHttp&) = delete;
  MetricsHttp& operator=(const MetricsHttp&) = delete;
  ~MetricsHttp();

  SocketAddress address() const { return address_; }
  int descriptor() const { return poller_.get(); }  // for poll(2)
  int timeout_ms(int most) const;
  void run();  // never waits

 private:
  explicit MetricsHttp(const net::Controller& controller)
      : controller_(controller), started_ns_(steady_now_ns()) {}
  static MHD_Result answer(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char* version, const char* upload,
                           size_t* upload_bytes, void** state);

  static void ended(void* self, MHD_Connection* connection, void** state,
                    MHD_ConnectionNotificationCode what);

  struct Visitor {
    int number;  // of the descriptor that libmicrohttpd has
    Fd fd;       // the same connection, but ours: that number may mean another one day
    SocketAddress from;
    uint64_t since_ns;
  };

  Result<void> start();
  bool watch(int fd, int operation) const;
  void accept_all();
  void forget(int number);
  std::vector<Visit> visits() const override;
  void drop_visit(size_t index) override;
  Status admit(Accepted accepted, Error* error) override;

  const net::Controller& controller_;
  const uint64_t started_ns_;
  SocketAddress address_;
  MHD_Daemon* daemon_ = nullptr;
  Fd listener_, poller_;
  std::deque<Visitor> visitors_;  // oldest first
  uint64_t paused_until_ns_ = 0;  // the listener is not watched; 0: it is
};

}  // namespace slime::switchd
