// The packet that leaves: its type, its addresses and its lengths. The payload is as ingress left it.
#ifndef SLIME_TNA_EGRESS_P4
#define SLIME_TNA_EGRESS_P4

control PacketEgress(inout headers_t hdr, in bit<16> port, in bit<16> replica, inout bit<1> discard) {
  // SEND_RESULT: a copy for each child.
  action send(bit<48> mac, bit<32> address, bit<16> udp_port) {
    hdr.ethernet.source = hdr.bridged.mac;
    hdr.ethernet.destination = mac;
    hdr.ipv4.source = hdr.ipv4.destination;
    hdr.ipv4.destination = address;
    hdr.udp.source = hdr.udp.destination;
    hdr.udp.destination = udp_port;
  }
  action lose() { discard = 1; }
  table ends {
    key = {
      hdr.sap.job: exact;
      replica: exact;
    }
    actions = { send; lose; }
    const default_action = lose();
    size = SOURCES;
  }
  action turn_round() {
    hdr.ethernet.destination = hdr.ethernet.source;
    hdr.ethernet.source = hdr.bridged.mac;
    bit<32> address = hdr.ipv4.source;
    hdr.ipv4.source = hdr.ipv4.destination;
    hdr.ipv4.destination = address;
    bit<16> udp_port = hdr.udp.source;
    hdr.udp.source = hdr.udp.destination;
    hdr.udp.destination = udp_port;
  }

  action fresh() {
    hdr.udp.checksum = 0;  // none: SAP/2 checks what it would protect
    hdr.ipv4.ttl = 64;
  }
  action values(bit<8> type) {
    fresh();
    hdr.sap.type = type;
    hdr.sap.level = 0;
  }
  action one_word(bit<8> type, bit<8> level) {
    fresh();
    hdr.sap.type = type;
    hdr.sap.level = level;
    hdr.sap.flags = 0;
    hdr.sap.format = SAP_I32;
    hdr.sap.lanes = 1;
    hdr.udp.bytes = 8 + SAP_HEADER_BYTES + 4;
    hdr.ipv4.bytes = 20 + 8 + SAP_HEADER_BYTES + 4;
  }
  table types {
    key = {
      hdr.bridged.send: exact;
      hdr.bridged.children_are_switches: exact;
    }
    actions = { values; one_word; NoAction; }
    const default_action = NoAction();
    size = 8;
    const entries = {
      (SEND_RESULT, 0): values(SAP_RESULT);
      (SEND_RESULT, 1): values(SAP_PARENT_RESULT);
      (SEND_AGAIN, 0): values(SAP_RESULT_AGAIN);
      (SEND_AGAIN, 1): values(SAP_PARENT_RESULT);
      (SEND_STATUS, 0): one_word(SAP_STATUS, 0);
      (SEND_STATUS, 1): one_word(SAP_STATUS, 1);
      (SEND_REJECT, 0): one_word(SAP_REJECT, 0);
      (SEND_REJECT, 1): one_word(SAP_REJECT, 0);
    }
  }

  apply {
    types.apply();
    if (hdr.bridged.send == SEND_RESULT) {
      ends.apply();
    } else if (hdr.bridged.send != SEND_FRAME) {
      turn_round();
    } else if (hdr.bridged.flooded == 1 && hdr.bridged.port == port) {
      discard = 1;  // a flooded frame does not go back
    }
  }
}

#endif
