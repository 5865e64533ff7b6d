// The headers of a packet, in the order in which they leave, and what ingress tells egress.
#ifndef SLIME_TNA_HEADERS_P4
#define SLIME_TNA_HEADERS_P4

// In front of a packet between ingress and egress.
header bridged_h {
  bit<8> send;
  bit<8> children_are_switches;
  bit<16> port;  // where it came in
  bit<8> flooded;
  bit<48> mac;   // the switch's
}

struct headers_t {
  bridged_h bridged;
  ethernet_h ethernet;
  arp_h arp;
  ipv4_h ipv4;
  icmp_h icmp;
  udp_h udp;
  sap_h sap;
  word_h word;  // of a status or a refusal, instead of `words`
  word_h[LANES] words;
}

struct bridge_t {
  bit<32> address;
  bit<48> mac;  // the switch's
  port_t port;
  bit<16> group;
  bit<1> is_own;
  bit<1> discard;
}

#define DROP_EIGHT(hdr, i)       \
  hdr.words[i].setInvalid();     \
  hdr.words[i + 1].setInvalid(); \
  hdr.words[i + 2].setInvalid(); \
  hdr.words[i + 3].setInvalid(); \
  hdr.words[i + 4].setInvalid(); \
  hdr.words[i + 5].setInvalid(); \
  hdr.words[i + 6].setInvalid(); \
  hdr.words[i + 7].setInvalid();
#define DROP_WORDS(hdr) \
  DROP_EIGHT(hdr, 0) DROP_EIGHT(hdr, 8) DROP_EIGHT(hdr, 16) DROP_EIGHT(hdr, 24)

#endif
