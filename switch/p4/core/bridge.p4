// What a switch does beside SAP/2: it forwards frames, and answers ARP and ping for its own
// address.
#ifndef SLIME_BRIDGE_P4
#define SLIME_BRIDGE_P4

#define ARP_REQUEST 1
#define ARP_REPLY 2
#define ICMP_ECHO 8
#define ICMP_ECHO_REPLY 0

control Bridge(inout headers_t hdr, inout bridge_t bridge) {
  action forward(port_t port) { bridge.port = port; }
  action flood(bit<16> group) { bridge.group = group; }
  action discard() { bridge.discard = 1; }
  table hosts {
    key = { hdr.ethernet.destination: exact; }
    actions = { forward; flood; discard; }
    default_action = discard();
    size = 1024;
  }
  apply { hosts.apply(); }
}

// The parser sets bridge.address to the address that the packet asks for (ARP) or goes to (IPv4); it
// is 0 in other packets, and no switch has that one.
control OwnAddress(inout bridge_t bridge) {
  action own(bit<48> mac) {
    bridge.is_own = 1;
    bridge.mac = mac;
  }
  table addresses {
    key = { bridge.address: exact; }
    actions = { own; NoAction; }
    default_action = NoAction();
    size = 16;
  }
  apply { addresses.apply(); }
}

// Turns a request into its answer, which leaves where it came from.
control Replies(inout headers_t hdr, inout bridge_t bridge) {
  action answer_arp() {
    hdr.arp.operation = ARP_REPLY;
    hdr.arp.target_mac = hdr.arp.sender_mac;
    hdr.arp.target_ip = hdr.arp.sender_ip;
    hdr.arp.sender_mac = bridge.mac;
    hdr.arp.sender_ip = bridge.address;
    hdr.ethernet.destination = hdr.ethernet.source;
    hdr.ethernet.source = bridge.mac;
  }
  // RFC 1624: the type is in the high byte of its word, and a carry is added to the lowest bit.
  action answer_ping(bit<16> difference) {
    hdr.icmp.type = ICMP_ECHO_REPLY;
    hdr.icmp.checksum = hdr.icmp.checksum + difference;
    hdr.ipv4.destination = hdr.ipv4.source;
    hdr.ipv4.source = bridge.address;
    hdr.ethernet.destination = hdr.ethernet.source;
    hdr.ethernet.source = bridge.mac;
  }
  apply {
    if (hdr.arp.isValid() && hdr.arp.operation == ARP_REQUEST) {
      answer_arp();
    } else if (hdr.icmp.isValid() && hdr.icmp.type == ICMP_ECHO) {
      if (hdr.icmp.checksum[15:11] == 31) {
        answer_ping(0x0801);
      } else {
        answer_ping(0x0800);
      }
    } else {
      bridge.discard = 1;
    }
  }
}

#endif
