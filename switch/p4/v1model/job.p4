// To which job a packet belongs, and whether it may take part (Shard::admit, in its order).
#ifndef SLIME_JOB_P4
#define SLIME_JOB_P4

control Job(inout headers_t hdr, inout meta_t meta) {
  action refuse(bit<32> why, bit<16> count) {
    meta.ended = 1;
    meta.count = count;
    meta.word = why;
    meta.send = SEND_REJECT;
  }
  action take(bit<16> index, bit<8> generation, bit<32> token, bit<32> first_slot, bit<32> slots,
              bit<32> all, bit<16> max_lanes, bit<8> formats, bit<16> port, bit<16> shard_mask,
              bit<8> shard_bits, bit<16> rail_mask, bit<16> group, bit<1> children_are_switches,
              bit<1> inner, bit<8> parent_child, port_t parent_port) {
    meta.job_index = index;
    meta.generation = generation;
    meta.token = token;
    meta.first_slot = first_slot;
    meta.slots = slots;
    meta.all = all;
    meta.max_lanes = max_lanes;
    meta.formats = formats;
    meta.port = port;
    meta.shard_mask = shard_mask;
    meta.rail = (hdr.sap.slot >> shard_bits) & rail_mask;
    meta.group = group + meta.rail;
    meta.children_are_switches = children_are_switches;
    meta.inner = inner;
    meta.parent_child = parent_child;
    meta.parent_port = parent_port;
  }
  table jobs {
    key = { hdr.sap.job: exact; }
    actions = { take; NoAction; }
    default_action = NoAction();
    size = JOBS;
  }
  // The address of each child on each of its rails; that of the parent is of child 0 and rail 0.
  action bound(bit<16> rail) { meta.source_rail = rail; }
  table sources {
    key = {
      hdr.sap.job: exact;
      meta.from_above: exact;
      hdr.sap.child: exact;
      hdr.ipv4.source: exact;
      hdr.udp.source: exact;
    }
    actions = { bound; NoAction; }
    default_action = NoAction();
    size = SOURCES;
  }
  apply {
    bit<8> format_bit = 8w1 << (bit<8>)hdr.sap.format;
    bit<1> wide = 0;
    if (hdr.sap.format == SAP_I64 || hdr.sap.format == SAP_U64) {
      wide = 1;
    }
    bit<8> child = hdr.sap.child;
    if (meta.from_above == 1) {
      hdr.sap.child = 0;
    }
    bit<1> is_bound = 0;
    if (sources.apply().hit) {
      is_bound = 1;
    }
    hdr.sap.child = child;
    if (!jobs.apply().hit) {
      refuse(SAP_NO_JOB, COUNTS_OF_A_JOB);
      meta.device_count = DEVICE_UNKNOWN_JOB;
    } else if (hdr.sap.generation != meta.generation) {
      refuse(SAP_GENERATION, COUNT_REJECTED_GENERATION);
    } else if (hdr.sap.token != meta.token) {
      refuse(0, COUNT_WRONG_TOKEN);
      meta.send = SEND_NOTHING;
    } else if (is_bound == 0 || (meta.from_above == 0 && meta.source_rail != meta.rail)) {
      refuse(SAP_SOURCE, COUNT_REJECTED_SOURCE);
    } else if ((bit<32>)hdr.sap.slot >= meta.slots ||
               (hdr.sap.slot & meta.shard_mask) != hdr.udp.destination - meta.port) {
      refuse(SAP_SLOT, COUNT_REJECTED_SLOT);
    } else if ((meta.children_are_switches == 1 && hdr.sap.type == SAP_CONTRIBUTION) ||
               (meta.children_are_switches == 0 && hdr.sap.type == SAP_PARTIAL) ||
               hdr.sap.lanes > meta.max_lanes || (wide == 1 && hdr.sap.lanes[0:0] == 1) ||
               (format_bit & meta.formats) == 0) {
      refuse(SAP_SHAPE, COUNT_REJECTED_SHAPE);
    }
    // A packet of the parent is an answer, and answers are not answered.
    if (meta.from_above == 1) {
      meta.send = SEND_NOTHING;
    }
    meta.half = ((meta.first_slot + (bit<32>)hdr.sap.slot) << 1) | (hdr.sap.epoch & 1);
    meta.bit_of_child = 32w1 << hdr.sap.child;
  }
}

#endif
