// What happens to a packet between the parser and the traffic manager. `bridge` says where it goes.
#ifndef SLIME_TNA_INGRESS_P4
#define SLIME_TNA_INGRESS_P4

control PacketIngress(inout headers_t hdr, inout meta_t meta, inout bridge_t bridge, in port_t port) {
  OwnAddress() own;
  Admission() admission;
  Slot() slot;
  Scalars() scalars;
  Lanes() lanes;
  Replies() replies;
  Bridge() frames;
  COUNTERS(JOBS * COUNTS_OF_A_JOB, job_counts);
  COUNTERS(JOBS, round_counts);
  COUNTERS(COUNTS_OF_THE_DEVICE, device_counts);
  COUNTERS(COUNTS_OF_REJECTS, reject_counts);
  METER(reject_rate);

  action to_children() { bridge.group = meta.group; }
  action back() { bridge.port = port; }
  action back_with_word() {
    bridge.port = port;
    hdr.word.setValid();
    hdr.word.value = meta.word;
    DROP_WORDS(hdr)
  }
  action nothing() { bridge.discard = 1; }
  table way_out {
    key = {
      meta.send: exact;
      meta.color: ternary;
    }
    actions = { to_children; back; back_with_word; nothing; }
    const default_action = nothing();
    size = 4;
    const entries = {
      (SEND_RESULT, _): to_children();
      (SEND_AGAIN, _): back();
      (SEND_STATUS, _): back_with_word();
      (SEND_REJECT, GREEN): back_with_word();
    }
  }

  apply {
    hdr.bridged.setValid();
    hdr.bridged.send = SEND_FRAME;
    hdr.bridged.children_are_switches = 0;
    hdr.bridged.flooded = 0;
    hdr.bridged.port = (bit<16>)port;
    own.apply(bridge);
    hdr.bridged.mac = bridge.mac;
    if (hdr.sap.isValid()) {
      admission.apply(hdr, meta, bridge);
    }
    if (meta.is_admitted == 1) {
      slot.apply(hdr, meta);
      lanes.apply(hdr, meta);
      scalars.apply(hdr, meta);
    }
    if (meta.send == SEND_REJECT) {
      MEASURE(meta.color, reject_rate);
      if (meta.color == GREEN) {
        COUNT(reject_counts, 0);
      } else {
        COUNT(reject_counts, 1);
      }
    }
    if (meta.counted == COUNTED_BY_JOB) {
      COUNT(job_counts, meta.count_index);
    } else if (meta.counted == COUNTED_BY_DEVICE) {
      COUNT(device_counts, meta.device_count);
    }
    if (meta.send == SEND_RESULT) {
      COUNT(round_counts, meta.job_index);
    }

    if (bridge.is_own == 0) {
      frames.apply(hdr, bridge);
      if (bridge.group != 0) {
        hdr.bridged.flooded = 1;
      }
    } else if (meta.damaged == 1) {
      bridge.discard = 1;
    } else if (!hdr.sap.isValid()) {
      replies.apply(hdr, bridge);
      bridge.port = port;
    } else {
      way_out.apply();
      hdr.bridged.send = meta.send;
      hdr.bridged.children_are_switches = (bit<8>)meta.children_are_switches;
    }
  }
}

#endif
