// The slot machine (switch/protocol/slot_machine.h): what a packet does to its half, and what the
// answer is. One packet at a time: the caller is @atomic.
#ifndef SLIME_SLOT_P4
#define SLIME_SLOT_P4

control Slot(inout headers_t hdr, inout meta_t meta) {
  register<bit<32>>(HALVES) epochs;
  register<bit<32>>(HALVES) arrivals;  // a bit per child; 0: fresh
  register<bit<1>>(HALVES) dones;      // of an inner switch: it holds the parent's result
  register<bit<32>>(HALVES) shapes;    // format, op, exponents only, lanes

  action refuse_shape() {
    meta.ended = 1;
    meta.count = COUNT_REJECTED_SHAPE;
    meta.word = SAP_SHAPE;
    meta.send = SEND_REJECT;
  }
  apply {
    bit<32> epoch;
    bit<32> arrived;
    bit<1> done;
    bit<32> shape;
    epochs.read(epoch, meta.half);
    arrivals.read(arrived, meta.half);
    dones.read(done, meta.half);
    shapes.read(shape, meta.half);
    bit<32> own_shape = hdr.sap.format ++ hdr.sap.op ++ 7w0 ++ hdr.sap.flags[0:0] ++ hdr.sap.lanes;
    bit<32> difference = hdr.sap.epoch - epoch;
    bit<1> same = 0;   // the half is of this round
    bit<1> first = 0;  // this packet would begin it
    if (arrived == 0) {
      first = 1;
    } else if (difference == 0) {
      same = 1;
    } else if (difference[31:31] == 0) {
      first = 1;
    }
    bit<1> whole = 0;
    if (arrived == meta.all) {
      whole = 1;
    }
    bit<1> answered = done | (1 - meta.inner);
    meta.lanes = shape[15:0];

    if (hdr.sap.type == SAP_PARENT_RESULT) {
      // The epoch is compared even if the half is fresh, as in Shard::parent_result.
      if (difference == 0 && shape != own_shape) {
        refuse_shape();
        meta.send = SEND_NOTHING;
      } else if (difference != 0 || whole == 0 || done == 1) {
        meta.ended = 1;
        meta.count = COUNT_STALE;
      } else {
        dones.write(meta.half, 1);
        meta.count = COUNT_PARENT_RESULTS;
        meta.values = VALUES_STORED;
        meta.send = SEND_RESULT;
      }
    } else if (hdr.sap.type == SAP_QUERY) {
      meta.count = COUNT_QUERIES;
      if (difference == 0) {
        meta.word = arrived;
      }
      if (first == 1 || (same == 1 && whole == 0)) {
        meta.send = SEND_STATUS;
      } else if (same == 1) {
        meta.values = VALUES_READ;
        meta.send = SEND_AGAIN;
        if (answered == 0) {
          meta.send = SEND_PARTIAL;
        }
      }
    } else if (same == 1 && shape != own_shape) {
      refuse_shape();
    } else if (same == 0 && first == 0) {
      meta.ended = 1;
      meta.count = COUNT_STALE;
    } else if (same == 1 && (arrived & meta.bit_of_child) != 0) {
      if (whole == 0) {
        meta.ended = 1;
        meta.count = COUNT_DUPLICATES;
      } else {
        meta.count = COUNT_RESULTS_AGAIN;
        meta.values = VALUES_READ;
        meta.send = SEND_AGAIN;
        if (answered == 0) {
          meta.send = SEND_PARTIAL;
        }
      }
    } else {
      meta.count = COUNT_CONTRIBUTIONS;
      meta.values = VALUES_FOLDED;
      if (first == 1) {
        meta.values = VALUES_STORED;
        arrived = 0;
        epochs.write(meta.half, hdr.sap.epoch);
        shapes.write(meta.half, own_shape);
        dones.write(meta.half, 0);
        meta.lanes = hdr.sap.lanes;
      }
      arrived = arrived | meta.bit_of_child;
      arrivals.write(meta.half, arrived);
      if (arrived == meta.all) {
        meta.count_too = COUNT_ROUNDS;
        meta.send = SEND_RESULT;
        if (meta.inner == 1) {
          meta.send = SEND_PARTIAL;
        }
      }
    }
    if (meta.values == VALUES_READ) {
      hdr.sap.format = shape[31:28];
      hdr.sap.op = shape[27:24];
    }
  }
}

#endif
