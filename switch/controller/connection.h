// One control connection at the switch's end: greeting, then one request after the other.
//
//     kGreeting ──Hello──▶ kUnproven ──a request with a right signature, and a place──▶ kServing
//         any of them ──refused for good──▶ the refusal is sent ──▶ kClosing
//
// Until kServing the peer has proven nothing. It has one deadline for all of that, and the server
// may end the connection to make room (base/net/visitors.h). In kClosing nothing is sent any more;
// what the peer still sends is read and discarded until it closes.
//
// Invariants: one request and one answer in memory. A request is read only after the answer before
// it has been sent. Everything that the peer must do has a deadline. A signature covers the
// sequence number, which must be that of the last request plus one, so no request is carried out
// twice.
// Thread rules: one thread, the controller's. Nothing here waits.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/net/visitors.h"
#include "settings/times.h"
#include "switch/controller/controller.h"
#include "switch/protocol/frames.h"

namespace slime::net {

// Whose key a connection must be signed with.
struct KeyRing {
  SecretKey common;  // the operators'; where tenants have none of their own, theirs too
  std::optional<std::map<std::string, SecretKey>> tenants;

  bool wanted() const { return !common.empty(); }
  // Operators have no name. nullptr: there is no such tenant.
  const SecretKey* of(const std::string& tenant) const {
    if (tenant.empty() || !tenants) return &common;
    const auto at = tenants->find(tenant);
    return at == tenants->end() ? nullptr : &at->second;
  }
};

struct ServerOptions {
  SocketAddress listen;
  KeyRing keys;
  bool allow_unauthenticated = false;
  uint32_t max_connections = 256;
  uint64_t greeting_ns = times::kControlGreeting;
  uint64_t request_ns = times::kControlRequest;
  uint64_t idle_ns = times::kControlIdle;
};

// Refuses peers of other hosts where there is no key. Nothing: the peer may go on.
std::optional<control::Refused> refuse_stranger(const ServerOptions& options,
                                                const SocketAddress& peer);

// The places for connections whose peers have proven themselves.
class ConnectionPlaces {
 public:
  // Makes a place for one more connection of this caller. Returns the reason if it cannot.
  virtual std::optional<std::string> make_place(const Caller& caller) = 0;

 protected:
  ~ConnectionPlaces() = default;
};

class Connection {
 public:
  // `strangers` is for the log.
  Connection(Accepted accepted, const ServerOptions& options, ConnectionPlaces& places,
             StrangerLog& strangers, uint64_t now_ns)
      : fd_(std::move(accepted.fd)),
        peer_(accepted.peer),
        options_(options),
        places_(places),
        strangers_(strangers),
        since_ns_(now_ns),
        deadline_ns_(now_ns + options.greeting_ns) {}

  Visit visit() const { return {peer_, since_ns_}; }
  bool proven() const { return proven_; }  // it has made a request that counts
  void abort() { abort_connection(std::move(fd_)); }
  uint64_t deadline_ns() const { return deadline_ns_; }
  bool wants_to_write() const { return sent_ < output_.size(); }

  // Does what can be done now. False: the connection is over.
  bool advance(Controller& controller);
  // What the peer was late with when the deadline passed.
  const char* late_with() const;
  const SocketAddress& peer() const { return peer_; }
  const Caller& caller() const { return caller_; }
  // Whether its key is the one that `keys` has for its tenant, or it has not named a tenant yet.
  bool holds_key_of(const KeyRing& keys) const;

 private:
  enum class Phase : uint8_t { kGreeting, kUnproven, kServing, kClosing };

  bool flush(uint64_t now_ns);
  bool discard_input();
  Status take_frame(Controller& controller);
  void on_hello(Controller& controller);
  Result<void> choose_key();
  void on_request(Controller& controller);
  bool is_authentic(Controller& controller);
  void answer(const control::Message& message, uint32_t sequence);
  void reject(control::Refusal why, const std::string& text, Controller& controller);

  Fd fd_;
  const SocketAddress peer_;
  const ServerOptions& options_;
  ConnectionPlaces& places_;
  StrangerLog& strangers_;
  const uint64_t since_ns_;
  bool proven_ = false;
  Phase phase_ = Phase::kGreeting;
  uint64_t deadline_ns_;
  Caller caller_;
  SecretKey key_;
  control::Signer signer_;
  uint32_t sequence_ = 0;       // of the last request
  bool signs_ = false;          // answers: the peer has proven that it has the key
  bool request_begun_ = false;  // a part of it is there, so it has the deadline of a request
  bool closing_ = false;        // after the answer that is being sent
  control::FrameReader reader_{control::kMaxRequestBytes};
  std::vector<std::byte> output_;
  size_t sent_ = 0;
};

}  // namespace slime::net
