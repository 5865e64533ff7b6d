// What a P4 program can do (P4Traits), and what a switch that runs it is configured to be
// (P4Options).
#pragma once

#include <map>

#include "base/error.h"
#include "base/net/socket.h"
#include "settings/times.h"
#include "switch/p4driver/entry.h"
#include "switch/protocol/sap.h"

namespace slime::net {

// Tables and actions of the part of a program that forwards what is not of the protocol. Each has
// the same keys and parameters in all programs. Texts last as long as the process.
struct BridgeNames {
  const char* addresses = "";  // table: the switch's own addresses; action: answer for this one
  const char* own = "";
  const char* hosts = "";  // table: MACs; actions: send to a port, drop, send to all ports
  const char* forward = "";
  const char* discard = "";
  const char* flood = "";
};

// Texts last as long as the process.
struct P4Traits {
  const char* device = "";   // what messages call it: "bmv2"
  const char* process = "";  // without which it cannot be reached: "simple_switch"
  uint32_t lanes = 0;        // 32-bit words of a packet
  uint32_t formats = 0;      // a bit each
  uint32_t shards = 0;       // at most: a power of two, up to sap::kMaxShards
  // Of all jobs together.
  uint32_t slots = 0;
  uint32_t jobs = 0;
  uint32_t sources = 0;           // addresses of children and parents
  uint32_t hosts = 0;             // entries of the forwarding table; one is the switch's own
  uint16_t ports = 0;             // numbers that a port can have, from 0 on
  uint32_t rails = 1;             // of a job, at most
  const char* reject_meter = "";  // limits refusals
  BridgeNames bridge = {};
};

// The MAC of a host, and the port of the switch that leads to it.
struct Host {
  uint64_t mac = 0;
  uint16_t port = 0;
};
using Hosts = std::map<uint32_t, Host>;  // by IPv4 address

// Ports by MAC: a host with several addresses is there once.
std::map<uint64_t, uint16_t> ports_by_mac(const Hosts& hosts);
// A copy for each port that leads to a host.
MulticastGroup group_of_all(uint16_t id, const Hosts& hosts);

struct P4Options {
  // Where workers send, IPv4; the port is that of shard 0. No host has it: the switch answers ARP
  // and ping for it.
  SocketAddress address;
  uint64_t mac = 0;                                    // of the switch
  uint32_t shards = 1;                                 // ports from there on: a power of two
  uint32_t max_lanes = sap::kMaxLanes;                 // the program may have fewer
  uint32_t formats = sap::kKnownFormats;               // a bit each; sap::kWordFormats at least
  Hosts hosts;                                         // all that the switch forwards to
  SocketAddress runtime;                               // server of the device's runtime interface
  int call_ms = times::kP4Call / times::kMillisecond;  // limits each call of it
  // With Tofino: program and chip, as bf_switchd calls them ("program-name" of its .conf file).
  std::string program = "switch";
  uint32_t device = 0;
};

uint32_t ipv4_of(const SocketAddress& address);

// Fails for options that a switch with that program cannot have.
Result<void> check(const P4Options& options, const P4Traits& traits);

}  // namespace slime::net
