// Whether a datagram is a packet of SAP/2 that a switch takes: sap::decode in P4.
#ifndef SLIME_VALIDITY_P4
#define SLIME_VALIDITY_P4

control Validity(inout headers_t hdr, inout meta_t meta) {
  action end(bit<16> count) {
    meta.ended = 1;
    meta.device_count = count;
  }
  apply {
    bit<16> expected = (hdr.sap.lanes << 2) + (8 + SAP_HEADER_BYTES);
    bit<1> is_word = 0;
    bit<1> has_values = 0;
    if (hdr.sap.type == SAP_STATUS || hdr.sap.type == SAP_REJECT) {
      is_word = 1;
    } else if (hdr.sap.type != SAP_QUERY) {
      has_values = 1;
    }
    bit<8> format_bit = 8w1 << (bit<8>)hdr.sap.format;
    bit<1> exponents_only = hdr.sap.flags[0:0];
    if (hdr.sap.magic != SAP_MAGIC) {
      end(DEVICE_MALFORMED);
    } else if (hdr.sap.version != SAP_VERSION) {
      end(DEVICE_OTHER_VERSION);
    } else if (hdr.sap.type < SAP_CONTRIBUTION || hdr.sap.type > SAP_REJECT ||
               hdr.sap.format > 7 || (format_bit & SAP_KNOWN_FORMATS) == 0 ||
               hdr.sap.op > SAP_OR || (hdr.sap.flags & ~(bit<8>)SAP_KNOWN_FLAGS) != 0) {
      end(DEVICE_MALFORMED);
    } else if (hdr.sap.lanes > 2048 || hdr.udp.bytes != expected ||
               hdr.ipv4.bytes != hdr.udp.bytes + 20) {
      end(DEVICE_MALFORMED);
    } else if ((is_word == 1 && hdr.sap.lanes != 1) ||
               (hdr.sap.type == SAP_QUERY && hdr.sap.lanes != 0) ||
               (has_values == 1 && exponents_only == 1 && hdr.sap.lanes != 0) ||
               (has_values == 1 && exponents_only == 0 && hdr.sap.lanes == 0)) {
      end(DEVICE_MALFORMED);
    } else if (hdr.sap.child >= SAP_MAX_CHILDREN ||
               (hdr.sap.level != 0 && hdr.sap.type != SAP_PARTIAL &&
                hdr.sap.type != SAP_STATUS)) {
      end(DEVICE_MALFORMED);
    } else if (hdr.sap.type == SAP_RESULT || hdr.sap.type == SAP_RESULT_AGAIN) {
      end(DEVICE_UNEXPECTED);
    }
    if (hdr.sap.type == SAP_PARENT_RESULT || is_word == 1) {
      meta.from_above = 1;
    }
  }
}

#endif
