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

control OwnAddress(inout headers_t hdr, inout bridge_t bridge) {
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
  apply {
    if (hdr.arp.isValid()) {
      bridge.address = hdr.arp.target_ip;
    } else if (hdr.ipv4.isValid()) {
      bridge.address = hdr.ipv4.destination;
    }
    if (hdr.arp.isValid() || hdr.ipv4.isValid()) {
      addresses.apply();
    }
  }
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
    bridge.back = 1;
  }
  action answer_ping() {
    hdr.icmp.type = ICMP_ECHO_REPLY;
    // RFC 1624: the type is in the high byte of its word.
    bit<17> sum = (bit<17>)hdr.icmp.checksum + 0x0800;
    hdr.icmp.checksum = sum[15:0] + (bit<16>)sum[16:16];
    hdr.ipv4.destination = hdr.ipv4.source;
    hdr.ipv4.source = bridge.address;
    hdr.ethernet.destination = hdr.ethernet.source;
    hdr.ethernet.source = bridge.mac;
    bridge.back = 1;
  }
  apply {
    if (hdr.arp.isValid() && hdr.arp.operation == ARP_REQUEST) {
      answer_arp();
    } else if (hdr.icmp.isValid() && hdr.icmp.type == ICMP_ECHO) {
      answer_ping();
    } else {
      bridge.discard = 1;
    }
  }
}

#endif
