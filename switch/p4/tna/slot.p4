// The slot machine (switch/protocol/slot_machine.h), as far as an ALU of a switch chip can have it: a
// half goes from one round to the next but one and nowhere else, because the ALU compares for
// equality (test/model, NextRoundOnly). What a packet does to its half, and what the answer is.
#ifndef SLIME_TNA_SLOT_P4
#define SLIME_TNA_SLOT_P4

control Slot(inout headers_t hdr, inout meta_t meta) {
  // The token of the job that used a half last. Another one than the packet's: the half is fresh.
  REGISTER(bit<32>, tokens);
  REGISTER_ACTION(claim, tokens, bit<32>, bit<1>,
                  if (value == hdr.sap.token) { answer = 1; } else { answer = 0; }
                  value = hdr.sap.token;)
  REGISTER_ACTION(compare, tokens, bit<32>, bit<1>,
                  if (value == hdr.sap.token) { answer = 1; } else { answer = 0; })
  action claim_half() { RUN(meta.is_known_half, claim); }
  action compare_half() { RUN(meta.is_known_half, compare); }
  table owners {
    key = { meta.kind: exact; }
    actions = { claim_half; compare_half; NoAction; }
    const default_action = NoAction();
    size = 3;
    const entries = {
      KIND_CONTRIBUTION: claim_half();
      KIND_PARTIAL: claim_half();
      KIND_QUERY: compare_half();
    }
  }

  REGISTER(bit<32>, epochs);
  REGISTER_ACTION(begin, epochs, bit<32>, bit<8>,
                  value = hdr.sap.epoch;
                  answer = ROUND_NEXT;)
  REGISTER_ACTION(advance, epochs, bit<32>, bit<8>,
                  if (value == hdr.sap.epoch) { answer = ROUND_SAME; }
                  else if (value == meta.round_before) {
                    answer = ROUND_NEXT;
                    value = hdr.sap.epoch;
                  } else { answer = ROUND_STALE; })
  REGISTER_ACTION(locate, epochs, bit<32>, bit<8>,
                  if (value == hdr.sap.epoch) { answer = ROUND_SAME; }
                  else if (value == meta.round_before) { answer = ROUND_NEXT; }
                  else { answer = ROUND_STALE; })
  action begin_round() { RUN(meta.round, begin); }
  action advance_round() { RUN(meta.round, advance); }
  action locate_round() { RUN(meta.round, locate); }
  action next_round() { meta.round = ROUND_NEXT; }
  table rounds {
    key = {
      meta.kind: exact;
      meta.is_known_half: exact;
    }
    actions = { begin_round; advance_round; locate_round; next_round; NoAction; }
    const default_action = NoAction();
    size = 6;
    const entries = {
      (KIND_CONTRIBUTION, 0): begin_round();
      (KIND_CONTRIBUTION, 1): advance_round();
      (KIND_PARTIAL, 0): begin_round();
      (KIND_PARTIAL, 1): advance_round();
      (KIND_QUERY, 0): next_round();
      (KIND_QUERY, 1): locate_round();
    }
  }

  REGISTER(bit<32>, arrivals);  // a bit for each child
  REGISTER_ACTION(first_arrival, arrivals, bit<32>, bit<32>,
                  value = meta.own_bit;
                  answer = 0;)
  REGISTER_ACTION(arrival, arrivals, bit<32>, bit<32>,
                  answer = value;
                  value = value | meta.own_bit;)
  REGISTER_ACTION(look, arrivals, bit<32>, bit<32>, answer = value;)
  action arrive_first() { RUN(meta.arrived, first_arrival); }
  action arrive() { RUN(meta.arrived, arrival); }
  action look_only() { RUN(meta.arrived, look); }
  table children {
    key = {
      meta.kind: exact;
      meta.round: exact;
    }
    actions = { arrive_first; arrive; look_only; NoAction; }
    const default_action = NoAction();
    size = 5;
    const entries = {
      (KIND_CONTRIBUTION, ROUND_NEXT): arrive_first();
      (KIND_CONTRIBUTION, ROUND_SAME): arrive();
      (KIND_PARTIAL, ROUND_NEXT): arrive_first();
      (KIND_PARTIAL, ROUND_SAME): arrive();
      (KIND_QUERY, ROUND_SAME): look_only();
    }
  }

  action count(bit<16> number) { meta.count_index = meta.count_index + number; }
  action store(bit<8> send) {
    count(COUNT_CONTRIBUTIONS);
    meta.values = VALUES_STORED;
    meta.send = send;
  }
  action fold(bit<8> send) {
    count(COUNT_CONTRIBUTIONS);
    meta.values = VALUES_FOLDED;
    meta.send = send;
  }
  action read() {
    count(COUNT_RESULTS_AGAIN);
    meta.values = VALUES_READ;
    meta.send = SEND_AGAIN;
  }
  action tell() {
    count(COUNT_QUERIES);
    meta.word = meta.arrived;
    meta.send = SEND_STATUS;
  }
  table decision {
    key = {
      meta.kind: ternary;
      meta.round: ternary;
      meta.repeated: ternary;
      meta.missing: ternary;
      meta.all_missing: ternary;
    }
    actions = { count; store; fold; read; tell; }
    const default_action = count(COUNT_STALE);
    size = 9;
    const entries = {
      (KIND_QUERY, ROUND_STALE, _, _, _): count(COUNT_QUERIES);
      (KIND_QUERY, _, _, _, _): tell();
      (_, ROUND_STALE, _, _, _): count(COUNT_STALE);
      (_, ROUND_NEXT, _, 0, _): store(SEND_RESULT);
      (_, ROUND_NEXT, _, _, _): store(SEND_NOTHING);
      (_, ROUND_SAME, 0, 0, _): fold(SEND_RESULT);
      (_, ROUND_SAME, 0, _, _): fold(SEND_NOTHING);
      (_, ROUND_SAME, _, _, 0): read();
      (_, ROUND_SAME, _, _, _): count(COUNT_DUPLICATES);
    }
  }

  apply {
    owners.apply();
    rounds.apply();
    children.apply();
    meta.repeated = meta.arrived & meta.own_bit;
    meta.missing = meta.arrived ^ meta.others;
    meta.all_missing = meta.arrived ^ meta.all;
    decision.apply();
  }
}

#endif
