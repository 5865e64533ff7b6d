// A group of words of a half, in one register: all numbers of it in one operation.
//
// 256 bits hold numbers of 8, 16, 32 or 64 bits side by side. H is the highest bit of each. Sums:
// without these bits no carry leaves a number, and the highest bit of a sum is the exclusive or of
// three. Comparisons: with H set in one and cleared in the other, no borrow leaves a number of
// their difference, and H of it tells which rest is the smaller.
struct numbers_t {
  group_t highest;
  bit<8> width_less_1;
  bit<1> is_signed;
}

control Numbers(in headers_t hdr, out numbers_t numbers) {
  apply {
    numbers.highest = HIGHEST_32;
    numbers.width_less_1 = 31;
    numbers.is_signed = 0;
    if (hdr.sap.format == SAP_I8 || hdr.sap.format == SAP_U8) {
      numbers.highest = HIGHEST_8;
      numbers.width_less_1 = 7;
    } else if (hdr.sap.format == SAP_I16) {
      numbers.highest = HIGHEST_16;
      numbers.width_less_1 = 15;
    } else if (hdr.sap.format == SAP_I64 || hdr.sap.format == SAP_U64) {
      numbers.highest = HIGHEST_64;
      numbers.width_less_1 = 63;
    }
    if (hdr.sap.format == SAP_I8 || hdr.sap.format == SAP_I16 || hdr.sap.format == SAP_I32 ||
        hdr.sap.format == SAP_I64) {
      numbers.is_signed = 1;
    }
  }
}

control Group(in headers_t hdr, in meta_t meta, in numbers_t numbers, inout group_t own) {
  register<group_t>(HALVES) values;

  apply {
    group_t kept;
    group_t highest = numbers.highest;
    values.read(kept, meta.half);
    if (meta.values == VALUES_READ) {
      own = kept;
    } else if (meta.values == VALUES_FOLDED) {
      if (hdr.sap.op == SAP_OR) {
        own = own | kept;
      } else if (hdr.sap.op == SAP_SUM) {
        own = ((own & ~highest) + (kept & ~highest)) ^ ((own ^ kept) & highest);
      } else {
        group_t rest = (own | highest) - (kept & ~highest);
        group_t decided = ~own & kept;  // by the highest bits, where these differ
        if (numbers.is_signed == 1) {
          decided = own & ~kept;
        }
        group_t less = (decided | (~(own ^ kept) & ~rest)) & highest;
        // All bits of the numbers of which own is less.
        group_t mask = (less << 1) - (less >> numbers.width_less_1);
        if (hdr.sap.op == SAP_MAX) {
          mask = ~mask;
        }
        own = (own & mask) | (kept & ~mask);
      }
    }
    if (meta.values == VALUES_STORED || meta.values == VALUES_FOLDED) {
      values.write(meta.half, own);
    }
  }
}
