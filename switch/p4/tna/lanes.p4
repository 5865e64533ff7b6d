// The values: LANES words of 32 bits, of which four fit in a stage.
#ifndef SLIME_TNA_LANES_P4
#define SLIME_TNA_LANES_P4

// A register has four actions at most. So one stores and adds, and minimum and maximum are one: that
// of unsigned numbers, to which `turn` makes the others.
control Lane(inout bit<32> word, in headers_t hdr, in meta_t meta) {
  REGISTER(bit<32>, kept);
  REGISTER_ACTION(store_or_add, kept, bit<32>, bit<32>,
                  if (meta.values == VALUES_STORED) { value = word; }
                  else { value = value + word; }
                  answer = value;)
  REGISTER_ACTION(raise, kept, bit<32>, bit<32>,
                  if (value < word) { value = word; }
                  answer = value;)
  REGISTER_ACTION(join, kept, bit<32>, bit<32>,
                  value = value | word;
                  answer = value;)
  REGISTER_ACTION(get, kept, bit<32>, bit<32>, answer = value;)

  action sum() { RUN(word, store_or_add); }
  action maximum() { RUN(word, raise); }
  action either() { RUN(word, join); }
  action read() { RUN(word, get); }
  table values {
    key = {
      meta.values: ternary;
      hdr.sap.op: ternary;
    }
    actions = { sum; maximum; either; read; NoAction; }
    const default_action = NoAction();
    size = 6;
    const entries = {
      (VALUES_STORED, _): sum();
      (VALUES_FOLDED, SAP_SUM): sum();
      (VALUES_FOLDED, SAP_MIN): maximum();
      (VALUES_FOLDED, SAP_MAX): maximum();
      (VALUES_FOLDED, SAP_OR): either();
      (VALUES_READ, _): read();
    }
  }
  apply { values.apply(); }
}

control Turn(inout bit<32> a, inout bit<32> b, inout bit<32> c, inout bit<32> d,
             in headers_t hdr) {
  action flip(bit<32> mask) {
    a = a ^ mask;
    b = b ^ mask;
    c = c ^ mask;
    d = d ^ mask;
  }
  table formats {
    key = {
      hdr.sap.format: exact;
      hdr.sap.op: exact;
    }
    actions = { flip; NoAction; }
    const default_action = NoAction();
    size = 3;
    const entries = {
      (SAP_I32, SAP_MAX): flip(0x80000000);
      (SAP_I32, SAP_MIN): flip(0x7fffffff);
      (SAP_U32, SAP_MIN): flip(0xffffffff);
    }
  }
  apply { formats.apply(); }
}

control FourLanes(inout bit<32> a, inout bit<32> b, inout bit<32> c, inout bit<32> d,
                  in headers_t hdr, in meta_t meta) {
  Turn() turn;
  Lane() lane_a;
  Lane() lane_b;
  Lane() lane_c;
  Lane() lane_d;
  Turn() turn_back;
  apply {
    turn.apply(a, b, c, d, hdr);
    lane_a.apply(a, hdr, meta);
    lane_b.apply(b, hdr, meta);
    lane_c.apply(c, hdr, meta);
    lane_d.apply(d, hdr, meta);
    turn_back.apply(a, b, c, d, hdr);
  }
}

#define FOUR(lanes, i)                                                            \
  lanes.apply(hdr.words[i].value, hdr.words[i + 1].value, hdr.words[i + 2].value, \
              hdr.words[i + 3].value, hdr, meta)

control Lanes(inout headers_t hdr, in meta_t meta) {
  FourLanes() lanes0;
  FourLanes() lanes4;
  FourLanes() lanes8;
  FourLanes() lanes12;
  FourLanes() lanes16;
  FourLanes() lanes20;
  FourLanes() lanes24;
  FourLanes() lanes28;
  apply {
    FOUR(lanes0, 0);
    FOUR(lanes4, 4);
    FOUR(lanes8, 8);
    FOUR(lanes12, 12);
    FOUR(lanes16, 16);
    FOUR(lanes20, 20);
    FOUR(lanes24, 24);
    FOUR(lanes28, 28);
  }
}

#endif
