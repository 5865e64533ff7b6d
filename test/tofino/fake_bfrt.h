// BFRuntime's gRPC service without a chip, on loopback: it has the program and the tables of
// device_json.h, refuses what the real server refuses (open-p4studio,
// pkgsrc/bf-drivers/src/bf_rt/proto/bf_rt_server_impl.cpp), keeps what it is told, and can be made
// to fail.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/net/socket.h"

namespace slime::tofino {

// Of a table: its key, action and data by their names. Bytes are in hexadecimal, those of a mask
// after a '/'; lists are in brackets.
struct FakeEntry {
  std::string action;
  std::map<std::string, std::string> data;
};
using FakeEntries = std::map<std::string, FakeEntry>;  // by the key: "dst=00ff, flags=0a/0f"

struct FakeState {
  std::map<std::string, FakeEntries> tables;   // by the last word of the name
  std::map<std::string, FakeEntry> defaults;   // default actions that were set
  std::vector<std::string> calls;              // "add hosts", "read counts": each update is one
  std::vector<int> writes;                     // updates of each WriteRequest
  std::optional<uint32_t> subscriber, binder;  // client numbers
  uint32_t device = 0, pipe = 0;               // that were asked of last
  size_t subscriptions = 0;                    // so far

  std::string fail_at;         // the call that is refused, as in `calls`
  bool fail_whole = false;     // and that without details, as where a server breaks
  bool hang = false;           // no call is answered, nor who subscribes
  int delay_ms = 0;            // before each answer
  bool answers_twice = false;  // a question about tables
  bool spoils_text = false;    // the answer to who subscribes is no UTF-8; the stream stays
  bool is_owned = false;       // another client has the program
  std::string program = "switch";
  std::string program_json, chip_json;
};

class FakeBfrt {
 public:
  // port 0: any. host: an address of this host.
  explicit FakeBfrt(uint16_t port = 0, const std::string& host = "127.0.0.1");
  ~FakeBfrt();
  SocketAddress address() const { return address_; }
  void drop_streams();    // the server ends them
  void tell_of_reload();  // another client has loaded a program
  // A copy, or a change, under the lock.
  FakeState state() const;
  template <typename Change>
  void change(const Change& change) {
    std::lock_guard lock(mutex_);
    change(state_);
  }

 private:
  class Service;

  mutable std::mutex mutex_;
  FakeState state_;
  SocketAddress address_;
  std::unique_ptr<Service> service_;
};

}  // namespace slime::tofino
