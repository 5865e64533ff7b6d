// Ethernet, ARP, ICMP, and SAP/2 in UDP of IPv4. All else stays payload, which the deparser does not
// change.
#ifndef SLIME_TNA_PARSER_P4
#define SLIME_TNA_PARSER_P4

#define TYPE_IPV4 0x0800
#define TYPE_ARP 0x0806
#define PROTOCOL_ICMP 1
#define PROTOCOL_UDP 17

// As many words as the header says. The hardware has no loop without a counter, and the states of
// this one are few enough to be written out.
#define WORD(i, next_i)                   \
  state word##i {                         \
    packet.extract(hdr.words[i]);         \
    transition select(hdr.sap.lanes) {    \
      next_i: accept;                     \
      default: word##next_i;              \
    }                                     \
  }
#define LAST_WORD(i)              \
  state word##i {                 \
    packet.extract(hdr.words[i]); \
    transition accept;            \
  }
#define LENGTH(lanes) (SAP_HEADER_BYTES + 8 + 4 * lanes, lanes): words

parser PacketParser(packet_in packet, out headers_t hdr, inout meta_t meta,
                    inout bridge_t bridge) {
  VERIFIER(checksum)

  state start {
    packet.extract(hdr.ethernet);
    transition select(hdr.ethernet.type) {
      TYPE_ARP: arp;
      TYPE_IPV4: ipv4;
      default: accept;
    }
  }
  state arp {
    packet.extract(hdr.arp);
    bridge.address = hdr.arp.target_ip;
    transition accept;
  }
  state ipv4 {
    packet.extract(hdr.ipv4);
    bridge.address = hdr.ipv4.destination;
    VERIFY(checksum, hdr.ipv4, meta.damaged)
    // No options, no fragment.
    transition select(hdr.ipv4.words, hdr.ipv4.fragment, hdr.ipv4.protocol) {
      (5, 0x0000 &&& 0xbfff, PROTOCOL_ICMP): icmp;
      (5, 0x0000 &&& 0xbfff, PROTOCOL_UDP): udp;
      default: accept;
    }
  }
  state icmp {
    packet.extract(hdr.icmp);
    transition accept;
  }
  state udp {
    packet.extract(hdr.udp);
    // A shorter one is no SAP/2.
    transition select(hdr.udp.bytes) {
      0 &&& 0xfff8: accept;
      8 &&& 0xfff8: accept;
      16 &&& 0xfff8: accept;
      24 &&& 0xfff8: accept;
      32 &&& 0xfff8: accept;
      default: sap;
    }
  }
  state sap {
    packet.extract(hdr.sap);
    transition select(hdr.udp.bytes, hdr.sap.lanes) {
      (SAP_HEADER_BYTES + 8, 0): no_words;
      LENGTH(1); LENGTH(2); LENGTH(3); LENGTH(4); LENGTH(5); LENGTH(6); LENGTH(7); LENGTH(8);
      LENGTH(9); LENGTH(10); LENGTH(11); LENGTH(12); LENGTH(13); LENGTH(14); LENGTH(15);
      LENGTH(16);
      LENGTH(17); LENGTH(18); LENGTH(19); LENGTH(20); LENGTH(21); LENGTH(22); LENGTH(23);
      LENGTH(24); LENGTH(25); LENGTH(26); LENGTH(27); LENGTH(28); LENGTH(29); LENGTH(30);
      LENGTH(31); LENGTH(32);
      default: accept;  // they disagree, or it has more than this switch takes
    }
  }
  state no_words {
    meta.lanes_fit = 1;
    transition accept;
  }
  state words {
    meta.lanes_fit = 1;
    transition word0;
  }
  WORD(0, 1) WORD(1, 2) WORD(2, 3) WORD(3, 4) WORD(4, 5) WORD(5, 6) WORD(6, 7) WORD(7, 8)
  WORD(8, 9) WORD(9, 10) WORD(10, 11) WORD(11, 12) WORD(12, 13) WORD(13, 14) WORD(14, 15)
  WORD(15, 16) WORD(16, 17) WORD(17, 18) WORD(18, 19) WORD(19, 20) WORD(20, 21) WORD(21, 22)
  WORD(22, 23) WORD(23, 24) WORD(24, 25) WORD(25, 26) WORD(26, 27) WORD(27, 28) WORD(28, 29)
  WORD(29, 30) WORD(30, 31) LAST_WORD(31)
}

#endif
