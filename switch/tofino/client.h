// A client of BFRuntime's gRPC service: a channel, the stream by which the server identifies its
// clients, and calls with deadlines. gRPC throws nothing; only client.cc uses it.
//
// States: closed, or open. open() subscribes and binds to a program. A call that is not answered,
// or whose connection fails, closes it; a call that the server refuses does not.
// Invariants: the connection ends with its stream. gRPC would connect again by itself, but the new
// connection would have no subscription, and after a restart the device would have no entries. The
// connection also ends when another client loads a program, because that empties all tables.
// Thread rules: one thread. gRPC has threads of its own, which call nothing here.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/net/socket.h"

// Of bfruntime.proto, whose generated header only client.cc and messages.h need.
namespace bfrt_proto {
class ReadRequest;
class ReadResponse;
class TargetDevice;
class WriteRequest;
}  // namespace bfrt_proto

namespace slime::net::bfrt {

// In JSON, see Info.
struct Description {
  std::string program, chip;
};

class Client {
 public:
  // Each client has a number of its own. A program has one client; a second one is refused
  // (BfRtServer::addConnection() and forwardingConfigBind() in bf_rt_server_mgr.cpp).
  static constexpr uint32_t kId = 28880;
  static constexpr int kMostBytes = 16 << 20;  // of a message that is received

  Client(const SocketAddress& server, uint32_t device, int call_ms);
  ~Client();

  // An error begins with gRPC's name for it. For some time after the end of a connection the server
  // may refuse a new one of the same client. Then this tries again, until the deadline of a call.
  Result<Description> open(const std::string& program);
  void close();
  bool is_open() const { return connection_ != nullptr; }
  void set_call_ms(int call_ms) { call_ms_ = call_ms; }  // of calls from now on
  // False: closed, or the stream has ended. Does not wait.
  bool is_alive();

  // Both are for all pipes. Updates are made in order, also those after a failed one; the error is
  // that of the first. Target and client number of the request are filled in here.
  // absent_is_fine: an update that deletes what is not there does not fail.
  Result<void> write(bfrt_proto::WriteRequest* request, bool absent_is_fine = false);
  Result<bfrt_proto::ReadResponse> read(bfrt_proto::ReadRequest* request);

 private:
  struct Connection;

  Result<Description> try_to_open(const std::string& program);
  Result<void> subscribe();
  Result<Description> describe(const std::string& program);
  Result<void> bind(const std::string& program);
  void fill(bfrt_proto::TargetDevice* target) const;
  Error error_of_call(int code, const std::string& message, const std::string& details);

  const SocketAddress server_;
  const uint32_t device_;
  int call_ms_;
  std::unique_ptr<Connection> connection_;  // absent: closed
};

}  // namespace slime::net::bfrt
