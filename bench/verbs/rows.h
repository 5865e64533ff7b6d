// The rows of bench-verbs: each takes rounds of the engine and of the bare loop by turns.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "devices/devices.h"
#include "transports/verbs/rail.h"

namespace slime::bench {

// Devices of one rail.
struct Port {
  std::unique_ptr<Devices> devices;
  verbs::VerbsRail* rail = nullptr;
};
struct Ports {
  Port from, to;
};

class Row {
 public:
  virtual ~Row() = default;
  virtual void round() = 0;
  // Prints a line. False: a count misses its aim.
  virtual bool report(nlohmann::json* rows) const = 0;
};

// Messages of a work each, as many as the comms may have under way.
std::unique_ptr<Row> make_messages(Ports& ports, uint32_t message, uint64_t bytes);
// Works without requests, so that the send queue is always full.
std::unique_ptr<Row> make_full_queue(Ports& ports, uint32_t work, uint64_t bytes);
// Messages there and back, one at a time.
std::unique_ptr<Row> make_round_trip(Ports& ports, const Settings& settings, uint32_t message,
                                     uint64_t trips);

}  // namespace slime::bench
