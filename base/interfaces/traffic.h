// What an interface itself has sent and received, by the kernel's counters of it.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>

namespace slime {

// Bytes since the interface was made, of all programs, headers included.
struct Traffic {
  uint64_t sent = 0, received = 0;
  Traffic operator+(const Traffic& other) const {
    return {sent + other.sent, received + other.received};
  }
  Traffic operator-(const Traffic& before) const {
    return {sent - before.sent, received - before.received};
  }
};
// nullopt: there is no interface with this index, or the kernel does not answer.
std::optional<Traffic> traffic_of(unsigned interface_index);

}  // namespace slime
