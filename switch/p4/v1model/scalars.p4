// The fields of the header that are reduced (exponents, special, check), and those that a result
// copies from the packet that opened the round (flags, cookie).
#ifndef SLIME_SCALARS_P4
#define SLIME_SCALARS_P4

control Scalars(inout headers_t hdr, inout meta_t meta) {
  register<bit<8>>(HALVES) exponents0;
  register<bit<8>>(HALVES) exponents1;
  register<bit<8>>(HALVES) specials;
  register<bit<8>>(HALVES) flags;
  register<bit<32>>(HALVES) cookies;
  register<bit<32>>(HALVES) checks;

  action load(out bit<8> exponent0, out bit<8> exponent1, out bit<8> special, out bit<32> check) {
    exponents0.read(exponent0, meta.half);
    exponents1.read(exponent1, meta.half);
    specials.read(special, meta.half);
    checks.read(check, meta.half);
    flags.read(hdr.sap.flags, meta.half);
    cookies.read(hdr.sap.cookie, meta.half);
  }
  action store() {
    exponents0.write(meta.half, hdr.sap.exponent0);
    exponents1.write(meta.half, hdr.sap.exponent1);
    specials.write(meta.half, hdr.sap.special);
    checks.write(meta.half, hdr.sap.check);
    flags.write(meta.half, hdr.sap.flags);
    cookies.write(meta.half, hdr.sap.cookie);
  }
  apply {
    bit<8> exponent0;
    bit<8> exponent1;
    bit<8> special;
    bit<32> check;
    if (meta.values == VALUES_STORED) {
      store();
    } else {
      load(exponent0, exponent1, special, check);
      if (meta.values == VALUES_READ) {
        hdr.sap.exponent0 = exponent0;
        hdr.sap.exponent1 = exponent1;
        hdr.sap.special = special;
        hdr.sap.check = check;
      } else {
        // They are signed.
        if ((exponent0 ^ 0x80) > (hdr.sap.exponent0 ^ 0x80)) {
          hdr.sap.exponent0 = exponent0;
        }
        if ((exponent1 ^ 0x80) > (hdr.sap.exponent1 ^ 0x80)) {
          hdr.sap.exponent1 = exponent1;
        }
        hdr.sap.special = hdr.sap.special | special;
        hdr.sap.check = hdr.sap.check + check;
        store();
      }
    }
  }
}

#endif
