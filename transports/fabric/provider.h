// What a provider of libfabric does and does not do, by its name and version. Sources: fi_efa(7),
// fi_shm(7), fi_tcp(7), fi_rxm(7), and the release notes of libfabric; what shm, tcp and rxm do was
// seen with 1.17 and 2.6.
#pragma once

#include <slime/result.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace slime::fabric {

struct Traits {
  // A NIC moves the data. Otherwise both ends' processes do, while they poll.
  bool in_hardware = false;
  // A write is asked to complete when it has arrived (FI_DELIVERY_COMPLETE). Where a completion
  // comes with the transmission already, an error of the peer is not heard of.
  bool delivery_complete = false;
  // The receiver's process copies out of the sender's memory, so what is under way when the sender
  // closes must not be reported: its memory may be in use for something else.
  bool reads_peer_memory = false;
  // A write that the peer refuses is dropped without a word; channels find out by counting.
  bool refuses_silently = false;
  // FI_MORE holds the doorbell back, and loses none.
  bool more = false;
};

// The error says why this provider of this version cannot be a rail.
Result<Traits> traits_of(std::string_view provider, uint32_t version);

}  // namespace slime::fabric
