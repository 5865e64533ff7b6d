// Finding an engine by a host and a port: who connects there gets the engine's address, and the
// connection ends. Nothing is read from a caller, so none can keep this end busy.
//
//   DiscoveryPort          one thread: that of the engine
//   find_engine()          waits, for the resolver and for the answer
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/net/host.h"

namespace slime {

class DiscoveryPort {
 public:
  static constexpr int kCallersATurn = 64;

  // `where`: as "0.0.0.0:7600".
  static Result<std::unique_ptr<DiscoveryPort>> open(const std::string& where,
                                                     std::vector<std::byte> address);
  int descriptor() const { return listener_.get(); }
  // Answers those who have called. True: there were some.
  bool answer();

 private:
  DiscoveryPort(Fd listener, std::vector<std::byte> address)
      : listener_(std::move(listener)), address_(std::move(address)) {}

  const Fd listener_;
  const std::vector<std::byte> address_;
};

// The address that an engine at that host and port gives. It tries again while nobody listens.
Result<std::vector<std::byte>> find_engine(const std::string& host_port, uint64_t limit_ns);

}  // namespace slime
