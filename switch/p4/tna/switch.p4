// The switch of SAP/2 for Tofino 2.
#include <core.p4>
#include <t2na.p4>

#include "tna/sizes.p4"

typedef PortId_t port_t;
typedef bit<16> half_t;

#include "core/sap.p4"
#include "core/counters.p4"
#include "tna/target.p4"
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

parser SwitchIngressParser(packet_in packet, out headers_t hdr, out all_meta_t meta,
                           out ingress_intrinsic_metadata_t intrinsic) {
  PacketParser() packets;
  state start {
    meta = ...;  // zeros
    packet.extract(intrinsic);
    packet.advance(PORT_METADATA_SIZE);
    packets.apply(packet, hdr, meta.sap, meta.bridge);
    transition accept;
  }
}

control SwitchIngress(inout headers_t hdr, inout all_meta_t meta,
                      in ingress_intrinsic_metadata_t intrinsic,
                      in ingress_intrinsic_metadata_from_parser_t from_parser,
                      inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                      inout ingress_intrinsic_metadata_for_tm_t for_tm) {
  PacketIngress() ingress;
  apply {
    ingress.apply(hdr, meta.sap, meta.bridge, intrinsic.ingress_port);
    if (meta.bridge.discard == 1) {
      for_deparser.drop_ctl = 1;
    } else if (meta.bridge.group != 0) {
      for_tm.mcast_grp_a = meta.bridge.group;
    } else {
      for_tm.ucast_egress_port = meta.bridge.port;
    }
  }
}

control SwitchIngressDeparser(packet_out packet, inout headers_t hdr, in all_meta_t meta,
                              in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
  apply { packet.emit(hdr); }
}

struct egress_meta_t {}

parser SwitchEgressParser(packet_in packet, out headers_t hdr, out egress_meta_t meta,
                          out egress_intrinsic_metadata_t intrinsic) {
  state start {
    packet.extract(intrinsic);
    packet.extract(hdr.bridged);
    packet.extract(hdr.ethernet);
    transition select(hdr.bridged.send) {
      SEND_FRAME: accept;
      default: answer;
    }
  }
  state answer {
    packet.extract(hdr.ipv4);
    packet.extract(hdr.udp);
    packet.extract(hdr.sap);
    transition accept;
  }
}

control SwitchEgress(inout headers_t hdr, inout egress_meta_t meta,
                     in egress_intrinsic_metadata_t intrinsic,
                     in egress_intrinsic_metadata_from_parser_t from_parser,
                     inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                     inout egress_intrinsic_metadata_for_output_port_t for_port) {
  PacketEgress() egress;
  apply {
    bit<1> discard = 0;
    egress.apply(hdr, (bit<16>)intrinsic.egress_port, intrinsic.egress_rid, discard);
    if (discard == 1) {
      for_deparser.drop_ctl = 1;
    }
  }
}

control SwitchEgressDeparser(packet_out packet, inout headers_t hdr, in egress_meta_t meta,
                             in egress_intrinsic_metadata_for_deparser_t for_deparser) {
  Checksum() checksum;
  apply {
    if (hdr.ipv4.isValid()) {
      hdr.ipv4.checksum = checksum.update(
          { hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.traffic_class, hdr.ipv4.bytes,
            hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
            hdr.ipv4.source, hdr.ipv4.destination });
    }
    packet.emit(hdr.ethernet);
    packet.emit(hdr.ipv4);
    packet.emit(hdr.udp);
    packet.emit(hdr.sap);
  }
}

Pipeline(SwitchIngressParser(), SwitchIngress(), SwitchIngressDeparser(), SwitchEgressParser(),
         SwitchEgress(), SwitchEgressDeparser()) pipe;
Switch(pipe) main;
