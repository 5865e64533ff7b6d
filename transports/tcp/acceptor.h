// The listening socket of one rail. A connection says by the nonce in its hello which passive
// channel it is for; strangers are dropped and logged (base/net/hello_port.h).
//
// States of an expected channel: waiting -> arrived (its connection is here) -> taken or forgotten.
// Threads: any; set-up path only, a mutex guards all.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/net/advertised.h"
#include "base/net/hello_port.h"
#include "base/net/port_range.h"
#include "base/random.h"
#include "settings/settings.h"
#include "transports/tcp/frames/wire.h"

namespace slime::tcp {

struct Arrival {
  Fd fd;
  SocketAddress peer;
  Greeting hello;
};

class Acceptor final : private HelloPort {
 public:
  using HelloPort::kGraceNs;
  using HelloPort::kPlaces;

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
  struct Expected {
    Nonce nonce;
    std::optional<Arrival> arrival;
  };

  Result<void> listen();
  const char* refuse_begun(std::span<const std::byte> said) const override;
  std::optional<std::string> accept(Caller& caller) override;
  void log_stranger(const Caller& caller, const std::string& why,
                    const std::string& more) const override;
  Expected* find(const Nonce& nonce);
  void erase(const Nonce& nonce);

  const std::string rail_name_;
  const SocketAddress local_;
  const uint64_t buffer_bytes_;
  const PortRange ports_;
  const AdvertisedAddresses advertised_;
  const Clock& clock_;

  mutable Mutex mutex_;  // guards what follows
  Fd listener_;
  SocketAddress listening_;
  std::list<Expected> expected_;
};

}  // namespace slime::tcp
