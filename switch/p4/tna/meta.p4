// What the controls of the switch for Tofino find out about a packet. Each sets fields that later
// ones read.
#ifndef SLIME_TNA_META_P4
#define SLIME_TNA_META_P4

// Of a packet, by its type.
#define KIND_MALFORMED 0
#define KIND_OTHER_VERSION 1
#define KIND_CONTRIBUTION 2
#define KIND_PARTIAL 3
#define KIND_QUERY 4
#define KIND_UNEXPECTED 5  // an answer: this switch has no parent

// Where a packet's round is, beside that of its half.
#define ROUND_STALE 0   // over, or not the next one
#define ROUND_SAME 1
#define ROUND_NEXT 2    // this packet would begin it

// What is sent for a packet of SAP/2.
#define SEND_NOTHING 0
#define SEND_RESULT 1   // the half's values to all children
#define SEND_AGAIN 2    // ... to the sender
#define SEND_STATUS 3   // a word to the sender: whose contributions have come
#define SEND_REJECT 4   // a word to the sender: why it is refused
#define SEND_FRAME 5    // no SAP/2: the frame is forwarded or is an answer to ARP or ping

// What happens to the values of a half.
#define VALUES_UNTOUCHED 0
#define VALUES_STORED 1
#define VALUES_FOLDED 2
#define VALUES_READ 3

#define COUNTED_BY_JOB 1
#define COUNTED_BY_DEVICE 2

struct meta_t {
  // Of the packet.
  bit<1> lanes_fit;     // as many words as the header and the length of UDP say
  bit<1> damaged;       // the checksum of IP is wrong
  bit<8> kind;
  bit<1> is_well_formed;
  bit<1> is_known_format;
  bit<1> is_word_format;
  bit<32> round_before;  // on this half: epoch - 2

  // Of the job.
  bit<1> is_known_job;
  bit<1> is_known_generation;
  bit<1> is_member;      // the token is right
  bit<1> is_bound;       // the source is that of the child
  bit<1> children_are_switches;
  bit<16> job_index;
  bit<16> count_index;   // first of the job's counters; then that of this packet
  bit<16> last_slot;
  bit<16> beyond;        // by how much the slot is beyond the last one
  bit<16> group;         // multicast, to all children
  bit<16> half;          // first, then that of the packet; where in the registers
  bit<32> own_bit;       // of the child
  bit<32> others;        // a bit for each other child
  bit<32> all;           // both

  // Of the round.
  bit<1> is_admitted;
  bit<1> is_known_half;  // it has the job's token
  bit<8> round;
  bit<32> arrived;       // before this packet
  bit<32> missing;       // of the others
  bit<32> all_missing;
  bit<32> repeated;      // own bit, if it has arrived before
  bit<8> values;
  bit<8> send;
  bit<32> word;          // of a status or a refusal
  bit<8> counted;        // by the job or by the device
  bit<16> device_count;
  bit<8> color;          // of the meter of refusals
}

#endif
