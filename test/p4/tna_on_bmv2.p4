// The controls of the switch for Tofino (switch/p4/tna) in a program for bmv2, as they are: only what
// TNA and v1model have under different names is here. device_test.cc compares it with the model.
#include <core.p4>
#include <v1model.p4>

#include "tna/sizes.p4"

typedef bit<9> port_t;

#define REGISTER(type, name) register<type>(HALVES) name
#define REGISTER_ACTION(name, array, type, result, ...) \
  action name(out result answer) {                      \
    type value;                                         \
    array.read(value, (bit<32>)meta.half);              \
    __VA_ARGS__                                         \
    array.write((bit<32>)meta.half, value);             \
  }
#define RUN(destination, name) name(destination)
#define COUNTERS(number, name) counter(number, CounterType.packets) name
#define COUNT(name, index) name.count((bit<32>)(index))
#define METER(name) meter(1, MeterType.packets) name
#define MEASURE(destination, name) name.execute_meter(32w0, destination)
#define GREEN 0
#define VERIFIER(name)
#define VERIFY(name, header, is_wrong)

#include "core/sap.p4"
#include "core/counters.p4"
#include "tna/headers.p4"
#include "tna/meta.p4"
#include "core/bridge.p4"
#include "tna/admission.p4"
#include "tna/slot.p4"
#include "tna/lanes.p4"
#include "tna/scalars.p4"
#include "tna/parser.p4"
#include "tna/ingress.p4"
#include "tna/egress.p4"

struct all_meta_t {
  meta_t sap;
  bridge_t bridge;
}

parser SwitchParser(packet_in packet, out headers_t hdr, inout all_meta_t meta,
                    inout standard_metadata_t standard) {
  PacketParser() packets;
  state start {
    packets.apply(packet, hdr, meta.sap, meta.bridge);
    transition accept;
  }
}

#define IPV4_FIELDS                                                                            \
  { hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.traffic_class, hdr.ipv4.bytes,                  \
    hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,               \
    hdr.ipv4.source, hdr.ipv4.destination }

control Verify(inout headers_t hdr, inout all_meta_t meta) {
  apply {
    verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.words == 5, IPV4_FIELDS, hdr.ipv4.checksum,
                    HashAlgorithm.csum16);
  }
}

control SwitchIngress(inout headers_t hdr, inout all_meta_t meta,
                      inout standard_metadata_t standard) {
  PacketIngress() ingress;
  apply {
    // The hardware drops a packet that ends before its parser does.
    if (standard.parser_error != error.NoError) {
      meta.bridge.discard = 1;
    } else {
      meta.sap.damaged = standard.checksum_error;
      ingress.apply(hdr, meta.sap, meta.bridge, standard.ingress_port);
    }
    if (meta.bridge.discard == 1) {
      mark_to_drop(standard);
    } else if (meta.bridge.group != 0) {
      standard.mcast_grp = meta.bridge.group;
    } else {
      standard.egress_spec = meta.bridge.port;
    }
  }
}

control SwitchEgress(inout headers_t hdr, inout all_meta_t meta,
                     inout standard_metadata_t standard) {
  PacketEgress() egress;
  apply {
    bit<1> discard = 0;
    egress.apply(hdr, (bit<16>)standard.egress_port, standard.egress_rid, discard);
    hdr.bridged.setInvalid();
    if (discard == 1) {
      mark_to_drop(standard);
    }
  }
}

control Checksums(inout headers_t hdr, inout all_meta_t meta) {
  apply {
    update_checksum(hdr.ipv4.isValid() && meta.bridge.is_own == 1, IPV4_FIELDS, hdr.ipv4.checksum,
                    HashAlgorithm.csum16);
  }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
  apply { packet.emit(hdr); }
}

V1Switch(SwitchParser(), Verify(), SwitchIngress(), SwitchEgress(), Checksums(),
         SwitchDeparser()) main;
