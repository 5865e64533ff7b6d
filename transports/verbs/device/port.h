// What is known of a NIC's port when a rail on it is opened.
#pragma once

#include <memory>
#include <string>

#include "settings/settings.h"
#include "transports/rail.h"
#include "transports/verbs/device/gid.h"
#include "transports/verbs/device/nic.h"

namespace slime::verbs {

struct Port {
  std::shared_ptr<Nic> nic;
  int number = 1;
  bool ethernet = false;   // RoCE; otherwise InfiniBand
  bool needs_grh = false;  // on InfiniBand too
  ibv_mtu mtu = IBV_MTU_1024;
  uint16_t lid = 0;
  GidEntry gid;
  std::string warning;    // names the port and a wish for its GID that is not met; empty: none
  std::string interface;  // the network interface of that GID, of RoCE; empty: not known
  uint32_t speed_mbps = 0;
  uint32_t max_message_bytes = 0;
  uint32_t changes = 0;  // PortHealth::changes by then
};

// The error says why no rail can be opened here.
Result<Port> read_port(std::shared_ptr<Nic> nic, int number, const GidWish& wish);

void warn_of(const Port& port);  // logs Port::warning, if there is one

// What has become of the LID or GID that queue pairs of this port were given. Empty: nothing.
std::string find_change(const Port& port);
// The same, asked only where events have come since the last call; *seen begins as port.changes.
std::string find_new_change(const Port& port, uint32_t* seen);

RailCaps describe(const Port& port, const Settings& settings, const std::string& oob_address);

// `active_speed` and `active_width` of ibv_port_attr (IBTA, PortInfo), in Mb/s. XDR's code has more
// than the 8 bits there are, so such a port counts as NDR or less.
uint32_t speed_mbps(uint8_t active_speed, uint8_t active_width);

}  // namespace slime::verbs
