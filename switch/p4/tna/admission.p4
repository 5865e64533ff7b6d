// To which job a packet belongs, and whether it may take part (Shard::admit, in its order).
#ifndef SLIME_TNA_ADMISSION_P4
#define SLIME_TNA_ADMISSION_P4

control Admission(in headers_t hdr, inout meta_t meta, in bridge_t bridge) {
  // The packet by itself -------------------------------------------------------------------------
  action kind_of(bit<8> kind) { meta.kind = kind; }
  table types {
    key = {
      hdr.sap.magic: ternary;
      hdr.sap.version: ternary;
      hdr.sap.type: ternary;
    }
    actions = { kind_of; }
    const default_action = kind_of(KIND_MALFORMED);
    size = 10;
    const entries = {
      (SAP_MAGIC, SAP_VERSION, SAP_CONTRIBUTION): kind_of(KIND_CONTRIBUTION);
      (SAP_MAGIC, SAP_VERSION, SAP_PARTIAL): kind_of(KIND_PARTIAL);
      (SAP_MAGIC, SAP_VERSION, SAP_QUERY): kind_of(KIND_QUERY);
      (SAP_MAGIC, SAP_VERSION, SAP_RESULT): kind_of(KIND_UNEXPECTED);
      (SAP_MAGIC, SAP_VERSION, SAP_RESULT_AGAIN): kind_of(KIND_UNEXPECTED);
      (SAP_MAGIC, SAP_VERSION, SAP_PARENT_RESULT): kind_of(KIND_UNEXPECTED);
      (SAP_MAGIC, SAP_VERSION, SAP_STATUS): kind_of(KIND_UNEXPECTED);
      (SAP_MAGIC, SAP_VERSION, SAP_REJECT): kind_of(KIND_UNEXPECTED);
      (SAP_MAGIC, SAP_VERSION, _): kind_of(KIND_MALFORMED);
      (SAP_MAGIC, _, _): kind_of(KIND_OTHER_VERSION);
    }
  }

  action well_formed() { meta.is_well_formed = 1; }
  action malformed() { meta.is_well_formed = 0; }
  table forms {
    key = {
      meta.lanes_fit: ternary;
      hdr.sap.type: ternary;
      hdr.sap.op: ternary;
      hdr.sap.flags: ternary;
      hdr.sap.lanes: ternary;
      hdr.sap.child: ternary;
      hdr.sap.level: ternary;
    }
    actions = { well_formed; malformed; }
    const default_action = malformed();
    size = 7;
    const entries = {
      // Exactly one of payload and the flag for exponents alone. The other flag says nothing here.
      (1, SAP_CONTRIBUTION, 0 &&& 0xc, 0 &&& 0xfd, 0, _, _): malformed();
      (1, SAP_CONTRIBUTION, 0 &&& 0xc, 0 &&& 0xfd, _, 0 &&& 0xe0, 0): well_formed();
      (1, SAP_CONTRIBUTION, 0 &&& 0xc, 1 &&& 0xfd, 0, 0 &&& 0xe0, 0): well_formed();
      (1, SAP_PARTIAL, 0 &&& 0xc, 0 &&& 0xfd, 0, _, _): malformed();
      (1, SAP_PARTIAL, 0 &&& 0xc, 0 &&& 0xfd, _, 0 &&& 0xe0, _): well_formed();
      (1, SAP_PARTIAL, 0 &&& 0xc, 1 &&& 0xfd, 0, 0 &&& 0xe0, _): well_formed();
      (1, SAP_QUERY, 0 &&& 0xc, 0 &&& 0xfc, 0, 0 &&& 0xe0, 0): well_formed();
    }
  }

  action word_format() {
    meta.is_known_format = 1;
    meta.is_word_format = 1;
  }
  action other_format() { meta.is_known_format = 1; }
  table formats {
    key = { hdr.sap.format: exact; }
    actions = { word_format; other_format; NoAction; }
    const default_action = NoAction();
    size = 7;
    const entries = {
      SAP_I32: word_format();
      SAP_U32: word_format();
      SAP_I16: other_format();
      SAP_I8: other_format();
      SAP_I64: other_format();
      SAP_U8: other_format();
      SAP_U64: other_format();
    }
  }

  // The packet and the jobs ------------------------------------------------------------------------
  action known(bit<16> index, bit<16> first_counter) {
    meta.is_known_job = 1;
    meta.job_index = index;
    meta.count_index = first_counter;
  }
  table jobs {
    key = { hdr.sap.job: exact; }
    actions = { known; NoAction; }
    const default_action = NoAction();
    size = JOBS;
  }
  action current() { meta.is_known_generation = 1; }
  table generations {
    key = {
      hdr.sap.job: exact;
      hdr.sap.generation: exact;
    }
    actions = { current; NoAction; }
    const default_action = NoAction();
    size = JOBS;
  }
  // Two entries for each job: halves of even rounds are apart from those of odd ones.
  action take(bit<16> first_half, bit<16> last_slot, bit<16> group, bit<1> children_are_switches) {
    meta.is_member = 1;
    meta.half = first_half;
    meta.last_slot = last_slot;
    meta.group = group;
    meta.children_are_switches = children_are_switches;
  }
  table members {
    key = {
      hdr.sap.job: exact;
      hdr.sap.generation: exact;
      hdr.sap.token: exact;
      hdr.sap.epoch[0:0]: exact @name("odd");
    }
    actions = { take; NoAction; }
    const default_action = NoAction();
    size = MEMBERS;
  }
  action bound(bit<32> own_bit, bit<32> others, bit<32> all) {
    meta.is_bound = 1;
    meta.own_bit = own_bit;
    meta.others = others;
    meta.all = all;
  }
  table sources {
    key = {
      hdr.sap.job: exact;
      hdr.sap.child: exact;
      hdr.ipv4.source: exact;
      hdr.udp.source: exact;
      hdr.udp.destination: exact;
    }
    actions = { bound; NoAction; }
    const default_action = NoAction();
    size = SOURCES;
  }

  // The verdict ------------------------------------------------------------------------------------
  action ignore() {}
  action admit() {
    meta.is_admitted = 1;
    meta.counted = COUNTED_BY_JOB;
  }
  action drop_of_no_job(bit<16> number) {
    meta.counted = COUNTED_BY_DEVICE;
    meta.device_count = number;
  }
  action refuse_of_no_job() {
    meta.counted = COUNTED_BY_DEVICE;
    meta.device_count = DEVICE_UNKNOWN_JOB;
    meta.word = SAP_NO_JOB;
    meta.send = SEND_REJECT;
  }
  action drop_of_job(bit<16> number) {
    meta.counted = COUNTED_BY_JOB;
    meta.count_index = meta.count_index + number;
  }
  action refuse(bit<32> why, bit<16> number) {
    meta.counted = COUNTED_BY_JOB;
    meta.count_index = meta.count_index + number;
    meta.word = why;
    meta.send = SEND_REJECT;
  }
  table verdict {
    key = {
      bridge.is_own: ternary;
      meta.damaged: ternary;
      meta.kind: ternary;
      meta.is_well_formed: ternary;
      meta.is_known_format: ternary;
      meta.is_known_job: ternary;
      meta.is_known_generation: ternary;
      meta.is_member: ternary;
      meta.is_bound: ternary;
      meta.beyond: ternary;
      meta.is_word_format: ternary;
      meta.children_are_switches: ternary;
    }
    actions = { ignore; admit; drop_of_no_job; refuse_of_no_job; drop_of_job; refuse; }
    const default_action = drop_of_no_job(DEVICE_MALFORMED);
    size = 16;
    const entries = {
      (0, _, _, _, _, _, _, _, _, _, _, _): ignore();  // it is forwarded
      (1, 1, _, _, _, _, _, _, _, _, _, _): ignore();
      (_, _, KIND_MALFORMED, _, _, _, _, _, _, _, _, _): drop_of_no_job(DEVICE_MALFORMED);
      (_, _, KIND_OTHER_VERSION, _, _, _, _, _, _, _, _, _): drop_of_no_job(DEVICE_OTHER_VERSION);
      (_, _, KIND_UNEXPECTED, _, _, _, _, _, _, _, _, _): drop_of_no_job(DEVICE_UNEXPECTED);
      (_, _, _, 0, _, _, _, _, _, _, _, _): drop_of_no_job(DEVICE_MALFORMED);
      (_, _, _, _, 0, _, _, _, _, _, _, _): drop_of_no_job(DEVICE_MALFORMED);
      (_, _, _, 1, 1, 0, _, _, _, _, _, _): refuse_of_no_job();
      (_, _, _, 1, 1, 1, 0, _, _, _, _, _): refuse(SAP_GENERATION, COUNT_REJECTED_GENERATION);
      (_, _, _, 1, 1, 1, 1, 0, _, _, _, _): drop_of_job(COUNT_WRONG_TOKEN);
      (_, _, _, 1, 1, 1, 1, 1, 0, _, _, _): refuse(SAP_SOURCE, COUNT_REJECTED_SOURCE);
      (_, _, KIND_CONTRIBUTION, 1, 1, 1, 1, 1, 1, 0, 1, 0): admit();
      (_, _, KIND_PARTIAL, 1, 1, 1, 1, 1, 1, 0, 1, 1): admit();
      (_, _, KIND_QUERY, 1, 1, 1, 1, 1, 1, 0, 1, _): admit();
      (_, _, _, 1, 1, 1, 1, 1, 1, 0, _, _): refuse(SAP_SHAPE, COUNT_REJECTED_SHAPE);
      (_, _, _, 1, 1, 1, 1, 1, 1, _, _, _): refuse(SAP_SLOT, COUNT_REJECTED_SLOT);
    }
  }

  apply {
    types.apply();
    forms.apply();
    formats.apply();
    jobs.apply();
    generations.apply();
    members.apply();
    sources.apply();
    meta.round_before = hdr.sap.epoch - 2;
    meta.half = meta.half + hdr.sap.slot;
    meta.beyond = hdr.sap.slot |-| meta.last_slot;
    verdict.apply();
  }
}

#endif
