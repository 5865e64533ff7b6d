// The fields of the header that are reduced: exponents (maximum; their highest bits are inverted
// meanwhile, so that they compare as unsigned numbers), special (or) and check (sum). Flags and
// cookie of a result are those of the packet that completes the round.
#ifndef SLIME_TNA_SCALARS_P4
#define SLIME_TNA_SCALARS_P4

#define BY_VALUES(table_name)                        \
  table table_name {                                 \
    key = { meta.values: exact; }                    \
    actions = { store; fold; read; NoAction; }       \
    const default_action = NoAction();               \
    size = 3;                                        \
    const entries = {                                \
      VALUES_STORED: store();                        \
      VALUES_FOLDED: fold();                         \
      VALUES_READ: read();                           \
    }                                                \
  }

control Exponent(inout bit<8> exponent, in meta_t meta) {
  REGISTER(bit<8>, kept);
  REGISTER_ACTION(replace, kept, bit<8>, bit<8>,
                  value = exponent;
                  answer = value;)
  REGISTER_ACTION(raise, kept, bit<8>, bit<8>,
                  if (value < exponent) { value = exponent; }
                  answer = value;)
  REGISTER_ACTION(get, kept, bit<8>, bit<8>, answer = value;)
  action store() { RUN(exponent, replace); }
  action fold() { RUN(exponent, raise); }
  action read() { RUN(exponent, get); }
  BY_VALUES(exponents)
  apply { exponents.apply(); }
}

control Special(inout bit<8> special, in meta_t meta) {
  REGISTER(bit<8>, kept);
  REGISTER_ACTION(replace, kept, bit<8>, bit<8>,
                  value = special;
                  answer = value;)
  REGISTER_ACTION(join, kept, bit<8>, bit<8>,
                  value = value | special;
                  answer = value;)
  REGISTER_ACTION(get, kept, bit<8>, bit<8>, answer = value;)
  action store() { RUN(special, replace); }
  action fold() { RUN(special, join); }
  action read() { RUN(special, get); }
  BY_VALUES(specials)
  apply { specials.apply(); }
}

control Check(inout bit<32> check, in meta_t meta) {
  REGISTER(bit<32>, kept);
  REGISTER_ACTION(replace, kept, bit<32>, bit<32>,
                  value = check;
                  answer = value;)
  REGISTER_ACTION(add, kept, bit<32>, bit<32>,
                  value = value + check;
                  answer = value;)
  REGISTER_ACTION(get, kept, bit<32>, bit<32>, answer = value;)
  action store() { RUN(check, replace); }
  action fold() { RUN(check, add); }
  action read() { RUN(check, get); }
  BY_VALUES(checks)
  apply { checks.apply(); }
}

control Scalars(inout headers_t hdr, in meta_t meta) {
  Exponent() exponent0;
  Exponent() exponent1;
  Special() special;
  Check() check;
  action flip() {
    hdr.sap.exponent0 = hdr.sap.exponent0 ^ 0x80;
    hdr.sap.exponent1 = hdr.sap.exponent1 ^ 0x80;
  }
  apply {
    flip();
    exponent0.apply(hdr.sap.exponent0, meta);
    exponent1.apply(hdr.sap.exponent1, meta);
    special.apply(hdr.sap.special, meta);
    check.apply(hdr.sap.check, meta);
    flip();
  }
}

#endif
