// The packet that answers, made of the one that came.
#ifndef SLIME_ANSWER_P4
#define SLIME_ANSWER_P4

control Answer(inout headers_t hdr, inout meta_t meta) {
  action one_word(bit<8> type) {
    hdr.sap.type = type;
    hdr.sap.flags = 0;
    hdr.sap.format = SAP_I32;
    hdr.sap.lanes = 1;
    hdr.sap.level = 0;
    hdr.words[0].setValid();
    hdr.words[0].value = meta.word;
  }
  action values(bit<8> type) {
    hdr.sap.type = type;
    hdr.sap.lanes = meta.lanes;
    hdr.sap.level = 0;
  }
  apply {
    if (meta.send == SEND_REJECT) {
      one_word(SAP_REJECT);
    } else if (meta.send == SEND_STATUS) {
      one_word(SAP_STATUS);
      hdr.sap.level = (bit<8>)meta.children_are_switches;
    } else if (meta.send == SEND_PARTIAL) {
      values(SAP_PARTIAL);
      hdr.sap.child = meta.parent_child;
      hdr.sap.level = 1;
    } else if (meta.send == SEND_RESULT || meta.send == SEND_AGAIN) {
      if (meta.children_are_switches == 1) {
        values(SAP_PARENT_RESULT);
      } else if (meta.send == SEND_RESULT) {
        values(SAP_RESULT);
      } else {
        values(SAP_RESULT_AGAIN);
      }
    }
  }
}

#endif
