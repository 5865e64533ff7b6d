// GET /metrics for Prometheus and GET /healthz, by libmicrohttpd. It runs in the daemon's own loop,
// without threads (which is why it is not prometheus-cpp: that brings its own), and bounds
// connections, their memory and their time.
#pragma once

#include <microhttpd.h>

#include <memory>

#include "switch/controller/controller.h"

namespace slime::switchd {

class MetricsHttp {
 public:
  static Result<std::unique_ptr<MetricsHttp>> open(const SocketAddress& address,
                                                   const net::Controller& controller);
  MetricsHttp(const MetricsHttp&) = delete;
  MetricsHttp& operator=(const MetricsHttp&) = delete;
  ~MetricsHttp();

  SocketAddress address() const { return address_; }
  int descriptor() const { return descriptor_; }  // for poll(2)
  int timeout_ms(int most) const;
  void run();  // never waits

 private:
  explicit MetricsHttp(const net::Controller& controller)
      : controller_(controller), started_ns_(SteadyClock::instance().now_ns()) {}
  static MHD_Result answer(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char* version, const char* upload,
                           size_t* upload_bytes, void** state);

  const net::Controller& controller_;
  const uint64_t started_ns_;
  SocketAddress address_;
  MHD_Daemon* daemon_ = nullptr;
  int descriptor_ = -1;
};

}  // namespace slime::switchd
