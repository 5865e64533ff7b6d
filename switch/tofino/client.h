// BFRuntime's gRPC service, as one client: a channel, the stream that the server knows its clients
// by, and calls with deadlines. gRPC throws nothing, and it is only in client.cc.
//
// States: closed, or open. open() subscribes and binds to a program. A call that is not answered,
// or that the connection fails, closes it; one that the server refuses does not. gRPC would connect
// again by itself: what is asked then would meet a server that does not know this client, or, after
// a restart, a device without entries, so the end of the stream is that of the connection. So is a
// message that another client has loaded a program, which empties all tables.
//
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
  // Each client has a number of its own. A program has one client: who binds second is refused
  // (BfRtServer::addConnection() and forwardingConfigBind() in bf_rt_server_mgr.cpp).
  static constexpr uint32_t kId = 28880;
  static constexpr int kMostBytes = 64 << 20;  // of a message that is received

  Client(const SocketAddress& server, uint32_t device, int call_ms);
  ~Client();

  // An error begins with gRPC's name for it. The server forgets a client, and this one's last
  // connection, some time after its end: where it does not yet, this tries again until the deadline
  // of a call.
  Result<Description> open(const std::string& program);
  void close();
  bool is_open() const { return connection_ != nullptr; }
  // False: closed, or the stream has ended. Does not wait.
  bool is_alive();

  // Of all pipes. Updates are made in their order, and after a failed one those that follow it; the
  // error is that of the first. Target and client number of the request are filled in here.
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
  const int call_ms_;
  std::unique_ptr<Connection> connection_;  // absent: closed
};

}  // namespace slime::net::bfrt
