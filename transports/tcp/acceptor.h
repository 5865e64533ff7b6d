// The listening socket of one rail. Connections prove by the nonce in their hello which passive
// channel they are for; strangers are dropped and logged (base/net/visitors.h). Set-up path only: a
// mutex guards all.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/socket.h"
#include "base/net/visitors.h"
#include "base/random.h"
#include "settings/settings.h"
#include "transports/tcp/wire.h"

namespace slime::tcp {

struct Arrival {
  Fd fd;
  SocketAddress peer;
  Hello hello;
};

class Acceptor final : private VisitorPort {
 public:
  using VisitorPort::kGraceNs;
  using VisitorPort::kPlaces;

  Acceptor(std::string rail_name, const SocketAddress& local, const Settings& settings,
           const Clock& clock = SteadyClock::instance());

  // Begins to listen at the first call. Returns the address to dial.
  Result<SocketAddress> expect(const Nonce& nonce);
  void forget(const Nonce& nonce);
  // Moves whatever can be moved. kOk: the connection with this nonce is in *arrival.
  Status take(const Nonce& nonce, Arrival* arrival, Error* error);

  uint64_t strangers() const;                // connections that were dropped
  std::string summary_of_strangers() const;  // for the error about a peer that never came

 private:
  struct Unmatched {
    Fd fd;
    SocketAddress peer;
    uint64_t since_ns;
    ControlMessage<kHelloBytes> hello;
  };
  struct Expected {
    Nonce nonce;
    std::optional<Arrival> arrival;
  };

  Result<void> listen();
  std::vector<Visit> visits() const override;
  void drop_visit(size_t index) override;
  Status admit(Accepted accepted, Error* error) override;
  bool settle(Unmatched& unmatched, uint64_t now_ns);  // true: it needs no more attention
  const char* match(Unmatched& unmatched);             // nullptr, or why it is a stranger
  Expected* find(const Nonce& nonce);
  void drop(const Unmatched& unmatched, const char* why, uint64_t now_ns);

  const std::string rail_name_;
  const SocketAddress local_;
  const uint64_t buffer_bytes_;
  const uint64_t handshake_ns_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  Fd listener_;
  SocketAddress listening_;
  std::list<Expected> expected_;
  std::deque<Unmatched> unmatched_;  // oldest first
  StrangerLog strangers_;
};

}  // namespace slime::tcp
