// Ethernet, ARP, ICMP, and SAP/2 in UDP of IPv4. All else stays payload, which the deparser does not
// change.
#ifndef SLIME_PARSER_P4
#define SLIME_PARSER_P4

#define TYPE_IPV4 0x0800
#define TYPE_ARP 0x0806
#define PROTOCOL_ICMP 1
#define PROTOCOL_UDP 17

parser PacketParser(packet_in packet, out headers_t hdr, inout bridge_t bridge) {
  bit<16> left = 0;

  state start {
    packet.extract(hdr.ethernet);
    transition select(hdr.ethernet.type) {
      TYPE_ARP: parse_arp;
      TYPE_IPV4: parse_ipv4;
      default: accept;
    }
  }
  state parse_arp {
    packet.extract(hdr.arp);
    bridge.address = hdr.arp.target_ip;
    transition accept;
  }
  state parse_ipv4 {
    packet.extract(hdr.ipv4);
    bridge.address = hdr.ipv4.destination;
    // No options, no fragment.
    transition select(hdr.ipv4.words, hdr.ipv4.fragment, hdr.ipv4.protocol) {
      (5, 0x0000 &&& 0xbfff, PROTOCOL_ICMP): parse_icmp;
      (5, 0x0000 &&& 0xbfff, PROTOCOL_UDP): parse_udp;
      default: accept;
    }
  }
  state parse_icmp {
    packet.extract(hdr.icmp);
    transition accept;
  }
  state parse_udp {
    packet.extract(hdr.udp);
    // A shorter one is no SAP/2.
    transition select(hdr.udp.bytes) {
      0 &&& 0xfff8: accept;
      8 &&& 0xfff8: accept;
      16 &&& 0xfff8: accept;
      24 &&& 0xfff8: accept;
      32 &&& 0xfff8: accept;
      default: parse_sap;
    }
  }
  state parse_sap {
    packet.extract(hdr.sap);
    left = hdr.sap.lanes;
    transition select(hdr.sap.lanes) {
      0: accept;
      LANES: parse_word;
      0 &&& ~(bit<16>)(LANES - 1): parse_word;
      default: accept;  // more than this switch takes
    }
  }
  state parse_word {
    packet.extract(hdr.words.next);
    left = left - 1;
    transition select(left) {
      0: accept;
      default: parse_word;
    }
  }
}

#endif
