// Written by lanes.py for v1model.
#ifndef SLIME_LANES_P4
#define SLIME_LANES_P4

// The highest bit of each number in a group of words.
const group_t HIGHEST_8 = 0x8080808080808080808080808080808080808080808080808080808080808080;
const group_t HIGHEST_16 = 0x8000800080008000800080008000800080008000800080008000800080008000;
const group_t HIGHEST_32 = 0x8000000080000000800000008000000080000000800000008000000080000000;
const group_t HIGHEST_64 = 0x8000000000000000800000000000000080000000000000008000000000000000;

#include "v1model/group.p4"

control Lanes(inout headers_t hdr, inout meta_t meta) {
  Numbers() format;
  Group() group0;
  Group() group1;
  Group() group2;
  Group() group3;
  Group() group4;
  Group() group5;
  Group() group6;
  Group() group7;
  apply {
    numbers_t numbers;
    group_t own;
    format.apply(hdr, numbers);
    if (meta.lanes > 0) {
      own = 0;
      if (hdr.words[0].isValid()) {
        own[255:224] = hdr.words[0].value;
      }
      if (hdr.words[1].isValid()) {
        own[223:192] = hdr.words[1].value;
      }
      if (hdr.words[2].isValid()) {
        own[191:160] = hdr.words[2].value;
      }
      if (hdr.words[3].isValid()) {
        own[159:128] = hdr.words[3].value;
      }
      if (hdr.words[4].isValid()) {
        own[127:96] = hdr.words[4].value;
      }
      if (hdr.words[5].isValid()) {
        own[95:64] = hdr.words[5].value;
      }
      if (hdr.words[6].isValid()) {
        own[63:32] = hdr.words[6].value;
      }
      if (hdr.words[7].isValid()) {
        own[31:0] = hdr.words[7].value;
      }
      group0.apply(hdr, meta, numbers, own);
      if (meta.lanes > 0) {
        hdr.words[0].setValid();
        hdr.words[0].value = own[255:224];
      }
      if (meta.lanes > 1) {
        hdr.words[1].setValid();
        hdr.words[1].value = own[223:192];
      }
      if (meta.lanes > 2) {
        hdr.words[2].setValid();
        hdr.words[2].value = own[191:160];
      }
      if (meta.lanes > 3) {
        hdr.words[3].setValid();
        hdr.words[3].value = own[159:128];
      }
      if (meta.lanes > 4) {
        hdr.words[4].setValid();
        hdr.words[4].value = own[127:96];
      }
      if (meta.lanes > 5) {
        hdr.words[5].setValid();
        hdr.words[5].value = own[95:64];
      }
      if (meta.lanes > 6) {
        hdr.words[6].setValid();
        hdr.words[6].value = own[63:32];
      }
      if (meta.lanes > 7) {
        hdr.words[7].setValid();
        hdr.words[7].value = own[31:0];
      }
    }
    if (meta.lanes > 8) {
      own = 0;
      if (hdr.words[8].isValid()) {
        own[255:224] = hdr.words[8].value;
      }
      if (hdr.words[9].isValid()) {
        own[223:192] = hdr.words[9].value;
      }
      if (hdr.words[10].isValid()) {
        own[191:160] = hdr.words[10].value;
      }
      if (hdr.words[11].isValid()) {
        own[159:128] = hdr.words[11].value;
      }
      if (hdr.words[12].isValid()) {
        own[127:96] = hdr.words[12].value;
      }
      if (hdr.words[13].isValid()) {
        own[95:64] = hdr.words[13].value;
      }
      if (hdr.words[14].isValid()) {
        own[63:32] = hdr.words[14].value;
      }
      if (hdr.words[15].isValid()) {
        own[31:0] = hdr.words[15].value;
      }
      group1.apply(hdr, meta, numbers, own);
      if (meta.lanes > 8) {
        hdr.words[8].setValid();
        hdr.words[8].value = own[255:224];
      }
      if (meta.lanes > 9) {
        hdr.words[9].setValid();
        hdr.words[9].value = own[223:192];
      }
      if (meta.lanes > 10) {
        hdr.words[10].setValid();
        hdr.words[10].value = own[191:160];
      }
      if (meta.lanes > 11) {
        hdr.words[11].setValid();
        hdr.words[11].value = own[159:128];
      }
      if (meta.lanes > 12) {
        hdr.words[12].setValid();
        hdr.words[12].value = own[127:96];
      }
      if (meta.lanes > 13) {
        hdr.words[13].setValid();
        hdr.words[13].value = own[95:64];
      }
      if (meta.lanes > 14) {
        hdr.words[14].setValid();
        hdr.words[14].value = own[63:32];
      }
      if (meta.lanes > 15) {
        hdr.words[15].setValid();
        hdr.words[15].value = own[31:0];
      }
    }
    if (meta.lanes > 16) {
      own = 0;
      if (hdr.words[16].isValid()) {
        own[255:224] = hdr.words[16].value;
      }
      if (hdr.words[17].isValid()) {
        own[223:192] = hdr.words[17].value;
      }
      if (hdr.words[18].isValid()) {
        own[191:160] = hdr.words[18].value;
      }
      if (hdr.words[19].isValid()) {
        own[159:128] = hdr.words[19].value;
      }
      if (hdr.words[20].isValid()) {
        own[127:96] = hdr.words[20].value;
      }
      if (hdr.words[21].isValid()) {
        own[95:64] = hdr.words[21].value;
      }
      if (hdr.words[22].isValid()) {
        own[63:32] = hdr.words[22].value;
      }
      if (hdr.words[23].isValid()) {
        own[31:0] = hdr.words[23].value;
      }
      group2.apply(hdr, meta, numbers, own);
      if (meta.lanes > 16) {
        hdr.words[16].setValid();
        hdr.words[16].value = own[255:224];
      }
      if (meta.lanes > 17) {
        hdr.words[17].setValid();
        hdr.words[17].value = own[223:192];
      }
      if (meta.lanes > 18) {
        hdr.words[18].setValid();
        hdr.words[18].value = own[191:160];
      }
      if (meta.lanes > 19) {
        hdr.words[19].setValid();
        hdr.words[19].value = own[159:128];
      }
      if (meta.lanes > 20) {
        hdr.words[20].setValid();
        hdr.words[20].value = own[127:96];
      }
      if (meta.lanes > 21) {
        hdr.words[21].setValid();
        hdr.words[21].value = own[95:64];
      }
      if (meta.lanes > 22) {
        hdr.words[22].setValid();
        hdr.words[22].value = own[63:32];
      }
      if (meta.lanes > 23) {
        hdr.words[23].setValid();
        hdr.words[23].value = own[31:0];
      }
    }
    if (meta.lanes > 24) {
      own = 0;
      if (hdr.words[24].isValid()) {
        own[255:224] = hdr.words[24].value;
      }
      if (hdr.words[25].isValid()) {
        own[223:192] = hdr.words[25].value;
      }
      if (hdr.words[26].isValid()) {
        own[191:160] = hdr.words[26].value;
      }
      if (hdr.words[27].isValid()) {
        own[159:128] = hdr.words[27].value;
      }
      if (hdr.words[28].isValid()) {
        own[127:96] = hdr.words[28].value;
      }
      if (hdr.words[29].isValid()) {
        own[95:64] = hdr.words[29].value;
      }
      if (hdr.words[30].isValid()) {
        own[63:32] = hdr.words[30].value;
      }
      if (hdr.words[31].isValid()) {
        own[31:0] = hdr.words[31].value;
      }
      group3.apply(hdr, meta, numbers, own);
      if (meta.lanes > 24) {
        hdr.words[24].setValid();
        hdr.words[24].value = own[255:224];
      }
      if (meta.lanes > 25) {
        hdr.words[25].setValid();
        hdr.words[25].value = own[223:192];
      }
      if (meta.lanes > 26) {
        hdr.words[26].setValid();
        hdr.words[26].value = own[191:160];
      }
      if (meta.lanes > 27) {
        hdr.words[27].setValid();
        hdr.words[27].value = own[159:128];
      }
      if (meta.lanes > 28) {
        hdr.words[28].setValid();
        hdr.words[28].value = own[127:96];
      }
      if (meta.lanes > 29) {
        hdr.words[29].setValid();
        hdr.words[29].value = own[95:64];
      }
      if (meta.lanes > 30) {
        hdr.words[30].setValid();
        hdr.words[30].value = own[63:32];
      }
      if (meta.lanes > 31) {
        hdr.words[31].setValid();
        hdr.words[31].value = own[31:0];
      }
    }
    if (meta.lanes > 32) {
      own = 0;
      if (hdr.words[32].isValid()) {
        own[255:224] = hdr.words[32].value;
      }
      if (hdr.words[33].isValid()) {
        own[223:192] = hdr.words[33].value;
      }
      if (hdr.words[34].isValid()) {
        own[191:160] = hdr.words[34].value;
      }
      if (hdr.words[35].isValid()) {
        own[159:128] = hdr.words[35].value;
      }
      if (hdr.words[36].isValid()) {
        own[127:96] = hdr.words[36].value;
      }
      if (hdr.words[37].isValid()) {
        own[95:64] = hdr.words[37].value;
      }
      if (hdr.words[38].isValid()) {
        own[63:32] = hdr.words[38].value;
      }
      if (hdr.words[39].isValid()) {
        own[31:0] = hdr.words[39].value;
      }
      group4.apply(hdr, meta, numbers, own);
      if (meta.lanes > 32) {
        hdr.words[32].setValid();
        hdr.words[32].value = own[255:224];
      }
      if (meta.lanes > 33) {
        hdr.words[33].setValid();
        hdr.words[33].value = own[223:192];
      }
      if (meta.lanes > 34) {
        hdr.words[34].setValid();
        hdr.words[34].value = own[191:160];
      }
      if (meta.lanes > 35) {
        hdr.words[35].setValid();
        hdr.words[35].value = own[159:128];
      }
      if (meta.lanes > 36) {
        hdr.words[36].setValid();
        hdr.words[36].value = own[127:96];
      }
      if (meta.lanes > 37) {
        hdr.words[37].setValid();
        hdr.words[37].value = own[95:64];
      }
      if (meta.lanes > 38) {
        hdr.words[38].setValid();
        hdr.words[38].value = own[63:32];
      }
      if (meta.lanes > 39) {
        hdr.words[39].setValid();
        hdr.words[39].value = own[31:0];
      }
    }
    if (meta.lanes > 40) {
      own = 0;
      if (hdr.words[40].isValid()) {
        own[255:224] = hdr.words[40].value;
      }
      if (hdr.words[41].isValid()) {
        own[223:192] = hdr.words[41].value;
      }
      if (hdr.words[42].isValid()) {
        own[191:160] = hdr.words[42].value;
      }
      if (hdr.words[43].isValid()) {
        own[159:128] = hdr.words[43].value;
      }
      if (hdr.words[44].isValid()) {
        own[127:96] = hdr.words[44].value;
      }
      if (hdr.words[45].isValid()) {
        own[95:64] = hdr.words[45].value;
      }
      if (hdr.words[46].isValid()) {
        own[63:32] = hdr.words[46].value;
      }
      if (hdr.words[47].isValid()) {
        own[31:0] = hdr.words[47].value;
      }
      group5.apply(hdr, meta, numbers, own);
      if (meta.lanes > 40) {
        hdr.words[40].setValid();
        hdr.words[40].value = own[255:224];
      }
      if (meta.lanes > 41) {
        hdr.words[41].setValid();
        hdr.words[41].value = own[223:192];
      }
      if (meta.lanes > 42) {
        hdr.words[42].setValid();
        hdr.words[42].value = own[191:160];
      }
      if (meta.lanes > 43) {
        hdr.words[43].setValid();
        hdr.words[43].value = own[159:128];
      }
      if (meta.lanes > 44) {
        hdr.words[44].setValid();
        hdr.words[44].value = own[127:96];
      }
      if (meta.lanes > 45) {
        hdr.words[45].setValid();
        hdr.words[45].value = own[95:64];
      }
      if (meta.lanes > 46) {
        hdr.words[46].setValid();
        hdr.words[46].value = own[63:32];
      }
      if (meta.lanes > 47) {
        hdr.words[47].setValid();
        hdr.words[47].value = own[31:0];
      }
    }
    if (meta.lanes > 48) {
      own = 0;
      if (hdr.words[48].isValid()) {
        own[255:224] = hdr.words[48].value;
      }
      if (hdr.words[49].isValid()) {
        own[223:192] = hdr.words[49].value;
      }
      if (hdr.words[50].isValid()) {
        own[191:160] = hdr.words[50].value;
      }
      if (hdr.words[51].isValid()) {
        own[159:128] = hdr.words[51].value;
      }
      if (hdr.words[52].isValid()) {
        own[127:96] = hdr.words[52].value;
      }
      if (hdr.words[53].isValid()) {
        own[95:64] = hdr.words[53].value;
      }
      if (hdr.words[54].isValid()) {
        own[63:32] = hdr.words[54].value;
      }
      if (hdr.words[55].isValid()) {
        own[31:0] = hdr.words[55].value;
      }
      group6.apply(hdr, meta, numbers, own);
      if (meta.lanes > 48) {
        hdr.words[48].setValid();
        hdr.words[48].value = own[255:224];
      }
      if (meta.lanes > 49) {
        hdr.words[49].setValid();
        hdr.words[49].value = own[223:192];
      }
      if (meta.lanes > 50) {
        hdr.words[50].setValid();
        hdr.words[50].value = own[191:160];
      }
      if (meta.lanes > 51) {
        hdr.words[51].setValid();
        hdr.words[51].value = own[159:128];
      }
      if (meta.lanes > 52) {
        hdr.words[52].setValid();
        hdr.words[52].value = own[127:96];
      }
      if (meta.lanes > 53) {
        hdr.words[53].setValid();
        hdr.words[53].value = own[95:64];
      }
      if (meta.lanes > 54) {
        hdr.words[54].setValid();
        hdr.words[54].value = own[63:32];
      }
      if (meta.lanes > 55) {
        hdr.words[55].setValid();
        hdr.words[55].value = own[31:0];
      }
    }
    if (meta.lanes > 56) {
      own = 0;
      if (hdr.words[56].isValid()) {
        own[255:224] = hdr.words[56].value;
      }
      if (hdr.words[57].isValid()) {
        own[223:192] = hdr.words[57].value;
      }
      if (hdr.words[58].isValid()) {
        own[191:160] = hdr.words[58].value;
      }
      if (hdr.words[59].isValid()) {
        own[159:128] = hdr.words[59].value;
      }
      if (hdr.words[60].isValid()) {
        own[127:96] = hdr.words[60].value;
      }
      if (hdr.words[61].isValid()) {
        own[95:64] = hdr.words[61].value;
      }
      if (hdr.words[62].isValid()) {
        own[63:32] = hdr.words[62].value;
      }
      if (hdr.words[63].isValid()) {
        own[31:0] = hdr.words[63].value;
      }
      group7.apply(hdr, meta, numbers, own);
      if (meta.lanes > 56) {
        hdr.words[56].setValid();
        hdr.words[56].value = own[255:224];
      }
      if (meta.lanes > 57) {
        hdr.words[57].setValid();
        hdr.words[57].value = own[223:192];
      }
      if (meta.lanes > 58) {
        hdr.words[58].setValid();
        hdr.words[58].value = own[191:160];
      }
      if (meta.lanes > 59) {
        hdr.words[59].setValid();
        hdr.words[59].value = own[159:128];
      }
      if (meta.lanes > 60) {
        hdr.words[60].setValid();
        hdr.words[60].value = own[127:96];
      }
      if (meta.lanes > 61) {
        hdr.words[61].setValid();
        hdr.words[61].value = own[95:64];
      }
      if (meta.lanes > 62) {
        hdr.words[62].setValid();
        hdr.words[62].value = own[63:32];
      }
      if (meta.lanes > 63) {
        hdr.words[63].setValid();
        hdr.words[63].value = own[31:0];
      }
    }
  }
}

#endif
