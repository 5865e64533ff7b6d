// A switch for Tofino and a job on it, as tests of its driver want them.
#pragma once

#include <vector>

#include "switch/core/job.h"
#include "switch/p4driver/options.h"

namespace slime::test {

inline SocketAddress address_of(const char* text) { return *SocketAddress::parse(text); }

// Host i of 10.0.0.1, 10.0.0.2, ... is at ports[i].
inline net::P4Options tofino_options(const std::vector<uint16_t>& ports) {
  net::P4Options options;
  options.address = address_of("10.0.0.254:28880");
  options.mac = 0x020000000001;
  for (uint64_t i = 0; i < ports.size(); ++i) {
    options.hosts[static_cast<uint32_t>(0x0a000001u + i)] = {0x020000000101u + i, ports[i]};
  }
  return options;
}

inline net::JobSpec tofino_job() {
  net::JobSpec spec;
  spec.job = 7;
  spec.generation = 3;
  spec.token = 0x01020304;
  spec.slots = 5;
  spec.max_lanes = 32;
  spec.formats = sap::kWordFormats;
  spec.children = {address_of("10.0.0.1:4000"), address_of("10.0.0.2:4001")};
  return spec;
}

}  // namespace slime::test
