// The switch of SAP/2 for bmv2's simple_switch.
#include <core.p4>
#include <v1model.p4>

#define LANES 64      // a power of two; lanes.p4 is written for it
#define HALVES 16384  // of slots, of all jobs together
#define JOBS 64
#define SOURCES 4096  // addresses of the children and parents of all jobs
// Of simple_switch: the instance_type of a copy, and what a meter says of a packet within its rate.
#define INGRESS_CLONE 1
#define GREEN 0

typedef bit<9> port_t;
typedef bit<256> group_t;

#include "core/sap.p4"
#include "core/counters.p4"
#include "v1model/meta.p4"

struct headers_t {
  ethernet_h ethernet;
  arp_h arp;
  ipv4_h ipv4;
  icmp_h icmp;
  udp_h udp;
  sap_h sap;
  word_h[LANES] words;
}

struct bridge_t {
  @field_list(QUESTION) bit<32> address;
  @field_list(QUESTION) bit<48> mac;
  port_t port;
  bit<16> group;
  @field_list(QUESTION) bit<1> is_own;
  bit<1> discard;
}
struct all_meta_t {
  meta_t sap;
  bridge_t bridge;
}

#include "core/bridge.p4"
#include "v1model/answer.p4"
#include "v1model/job.p4"
#include "v1model/lanes.p4"
#include "v1model/parser.p4"
#include "v1model/scalars.p4"
#include "v1model/slot.p4"
#include "v1model/validity.p4"

parser SwitchParser(packet_in packet, out headers_t hdr, inout all_meta_t meta,
                    inout standard_metadata_t standard) {
  PacketParser() packets;
  state start {
    packets.apply(packet, hdr, meta.bridge);
    transition accept;
  }
}

control Verify(inout headers_t hdr, inout all_meta_t meta) {
  apply {
    verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.words == 5,
                    { hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.traffic_class, hdr.ipv4.bytes,
                      hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
                      hdr.ipv4.source, hdr.ipv4.destination },
                    hdr.ipv4.checksum, HashAlgorithm.csum16);
  }
}

control Aggregate(inout headers_t hdr, inout meta_t meta) {
  Validity() validity;
  Job() job;
  Slot() slot;
  Scalars() scalars;
  Lanes() lanes;
  counter(JOBS * COUNTS_OF_A_JOB, CounterType.packets) job_counts;
  counter(COUNTS_OF_THE_DEVICE, CounterType.packets) device_counts;
  meter(1, MeterType.packets) reject_rate;
  apply {
    meta.count = COUNTS_OF_A_JOB;
    meta.count_too = COUNTS_OF_A_JOB;
    meta.device_count = COUNTS_OF_THE_DEVICE;
    validity.apply(hdr, meta);
    if (meta.ended == 0) {
      job.apply(hdr, meta);
    }
    if (meta.ended == 0) {
      if (hdr.sap.type == SAP_STATUS || hdr.sap.type == SAP_REJECT) {
        meta.count = COUNT_PARENT_WORDS;
        meta.send = SEND_TO_CHILDREN;
        if (hdr.sap.type == SAP_STATUS) {
          meta.send = SEND_TO_CHILD;
          if ((meta.all & (32w1 << (bit<8>)hdr.sap.cookie)) == 0 || hdr.sap.cookie > 31) {
            meta.send = SEND_NOTHING;
            meta.count = COUNT_REJECTED_SHAPE;
          }
        }
      } else {
        @atomic {
          slot.apply(hdr, meta);
          if (meta.ended == 0 && meta.values != VALUES_UNTOUCHED) {
            scalars.apply(hdr, meta);
            lanes.apply(hdr, meta);
          }
        }
      }
    }
    if (meta.send == SEND_REJECT) {
      bit<2> color;
      reject_rate.execute_meter(32w0, color);
      if (color == GREEN) {
        device_counts.count(DEVICE_REJECTS_SENT);
      } else {
        device_counts.count(DEVICE_REJECTS_SPARED);
        meta.send = SEND_NOTHING;
      }
    }
    if (meta.count < COUNTS_OF_A_JOB) {
      job_counts.count((bit<32>)(meta.job_index * COUNTS_OF_A_JOB + meta.count));
    }
    if (meta.count_too < COUNTS_OF_A_JOB) {
      job_counts.count((bit<32>)(meta.job_index * COUNTS_OF_A_JOB + meta.count_too));
    }
    if (meta.device_count < COUNTS_OF_THE_DEVICE) {
      device_counts.count((bit<32>)meta.device_count);
    }
  }
}

control SwitchIngress(inout headers_t hdr, inout all_meta_t meta,
                      inout standard_metadata_t standard) {
  OwnAddress() own;
  Aggregate() aggregate;
  Answer() answer;
  Replies() replies;
  Bridge() bridge;

  action discard() { mark_to_drop(standard); }
  action turn_round() {
    standard.egress_spec = standard.ingress_port;
    bit<48> mac = hdr.ethernet.source;
    hdr.ethernet.source = hdr.ethernet.destination;
    hdr.ethernet.destination = mac;
    bit<32> address = hdr.ipv4.source;
    hdr.ipv4.source = hdr.ipv4.destination;
    hdr.ipv4.destination = address;
    bit<16> udp_port = hdr.udp.source;
    hdr.udp.source = hdr.udp.destination;
    hdr.udp.destination = udp_port;
  }
  action size() {
    hdr.udp.bytes = (hdr.sap.lanes << 2) + (8 + SAP_HEADER_BYTES);
    hdr.udp.checksum = 0;  // none: SAP/2 checks what it would protect
    hdr.ipv4.bytes = hdr.udp.bytes + 20;
    hdr.ipv4.ttl = 64;
  }
  apply {
    own.apply(meta.bridge);
    if (meta.bridge.is_own == 0) {
      bridge.apply(hdr, meta.bridge);
      standard.egress_spec = meta.bridge.port;
      standard.mcast_grp = meta.bridge.group;
    } else if (standard.parser_error != error.NoError || standard.checksum_error == 1) {
      meta.bridge.discard = 1;  // cut short, or damaged
    } else if (!hdr.sap.isValid()) {
      replies.apply(hdr, meta.bridge);
      standard.egress_spec = standard.ingress_port;
    } else {
      aggregate.apply(hdr, meta.sap);
      // All children have contributed and the parent has not answered: the question goes there too.
      if (hdr.sap.type == SAP_QUERY && meta.sap.send == SEND_PARTIAL) {
        clone_preserving_field_list(CloneType.I2E, (bit<32>)meta.sap.job_index, QUESTION);
      }
      answer.apply(hdr, meta.sap);
      size();
      if (meta.sap.send == SEND_NOTHING) {
        discard();
      } else if (meta.sap.send == SEND_PARTIAL) {
        standard.egress_spec = meta.sap.parent_port;
      } else if (meta.sap.send == SEND_RESULT || meta.sap.send == SEND_TO_CHILDREN ||
                 meta.sap.send == SEND_TO_CHILD) {
        standard.mcast_grp = meta.sap.group;
      } else {
        turn_round();
        truncate((bit<32>)hdr.ipv4.bytes + 14);
      }
    }
    if (meta.bridge.discard == 1) {
      discard();
    }
  }
}

control SwitchEgress(inout headers_t hdr, inout all_meta_t meta,
                     inout standard_metadata_t standard) {
  bit<16> end = standard.egress_rid;  // of a replica: 32 * rail + child
  action send(bit<48> mac, bit<32> address, bit<16> udp_port) {
    hdr.ethernet.source = meta.bridge.mac;
    hdr.ethernet.destination = mac;
    hdr.ipv4.source = meta.bridge.address;
    hdr.ipv4.destination = address;
    hdr.udp.source = hdr.udp.destination;
    hdr.udp.destination = udp_port;
  }
  action discard() { mark_to_drop(standard); }
  table ends {
    key = {
      hdr.sap.job: exact;
      end: exact;
    }
    actions = { send; discard; }
    default_action = discard();
    size = SOURCES;
  }
  action ask() {
    hdr.sap.cookie = (bit<32>)hdr.sap.child;  // the parent's answer repeats it: who has asked
    hdr.udp.checksum = 0;                     // a clone has that of the packet that came
    hdr.sap.child = meta.sap.parent_child;
    end = TO_PARENT;
  }
  apply {
    if (standard.instance_type == INGRESS_CLONE) {
      ask();
      ends.apply();
    } else if (meta.sap.send == SEND_PARTIAL) {
      end = TO_PARENT;
      ends.apply();
    } else if (meta.sap.send == SEND_RESULT || meta.sap.send == SEND_TO_CHILDREN) {
      ends.apply();
    } else if (meta.sap.send == SEND_TO_CHILD) {
      if (end[4:0] == hdr.sap.cookie[4:0]) {
        hdr.sap.child = hdr.sap.cookie[7:0];
        ends.apply();
      } else {
        discard();
      }
    } else if (meta.bridge.is_own == 0 && standard.egress_port == standard.ingress_port) {
      discard();  // a flooded frame does not go back
    }
  }
}

control Checksums(inout headers_t hdr, inout all_meta_t meta) {
  apply {
    // A forwarded packet keeps its checksum, right or wrong.
    update_checksum(meta.bridge.is_own == 1 && hdr.ipv4.isValid(),
                    { hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.traffic_class, hdr.ipv4.bytes,
                      hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
                      hdr.ipv4.source, hdr.ipv4.destination },
                    hdr.ipv4.checksum, HashAlgorithm.csum16);
  }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
  apply { packet.emit(hdr); }
}

V1Switch(SwitchParser(), Verify(), SwitchIngress(), SwitchEgress(), Checksums(),
         SwitchDeparser()) main;
