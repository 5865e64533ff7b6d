// The runtime interface of a simple_switch that forwards nothing: a real Thrift server on loopback,
// which keeps what it is told and can be made to fail.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/net/socket.h"

namespace apache::thrift::server {
class TThreadedServer;
}

namespace slime::p4 {

struct FakeState {
  struct Entry {
    std::vector<std::string> key, data;
    std::string action;
  };
  std::map<std::string, std::map<int32_t, Entry>> tables;
  std::map<std::string, std::string> default_actions;
  std::map<int32_t, int32_t> groups;    // handle to number
  std::map<int32_t, int32_t> replicas;  // handle to group
  std::set<int32_t> mirrors;
  std::vector<std::string> calls;  // what was asked, in order: "add jobs", "clear arrivals 0 8"
  int32_t next_handle = 1;
  std::string fail_at;  // the call that is refused, as in `calls`
  bool broken = false;  // every call ends the connection
  bool hang = false;    // no call is answered
  int delay_ms = 0;     // before each answer
};

class FakeBmv2 {
 public:
  FakeBmv2();
  ~FakeBmv2();
  SocketAddress address() const { return address_; }
  // A copy, or a change, under the lock.
  FakeState state() const;
  template <typename Change>
  void change(const Change& change) {
    std::lock_guard lock(*mutex_);
    change(*state_);
  }

 private:
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
  std::shared_ptr<FakeState> state_ = std::make_shared<FakeState>();
  std::shared_ptr<apache::thrift::server::TThreadedServer> server_;
  SocketAddress address_;
  std::thread thread_;
};

}  // namespace slime::p4
