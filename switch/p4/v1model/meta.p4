// The metadata of a packet: each control sets fields that later ones read.
#ifndef SLIME_META_P4
#define SLIME_META_P4

// What is sent for a packet of SAP/2.
#define SEND_NOTHING 0
#define SEND_RESULT 1        // the half's values to all children
#define SEND_AGAIN 2         // ... to the sender
#define SEND_PARTIAL 3       // ... to the parent
#define SEND_STATUS 4        // a word to the sender: whose contributions have come
#define SEND_REJECT 5        // a word to the sender: why it is refused
#define SEND_TO_CHILDREN 6   // what the parent said
#define SEND_TO_CHILD 7      // ... to the one that had asked

// The receiver of a packet: a child on a rail, 32 * rail + child, or the parent.
#define TO_PARENT 0x8000

// What happens to the values of a half.
#define VALUES_UNTOUCHED 0
#define VALUES_STORED 1
#define VALUES_FOLDED 2
#define VALUES_READ 3

// The list of fields that a clone keeps. The clone becomes a question to the parent.
#define QUESTION 1

struct meta_t {
  // Of the job.
  bit<16> job_index;       // its rows of counters
  bit<8> generation;
  bit<32> token;
  bit<32> first_slot;      // in the registers
  bit<32> slots;
  bit<32> all;             // a bit for each child
  bit<16> max_lanes;
  bit<8> formats;          // a bit each
  bit<16> port;            // of shard 0
  bit<16> shard_mask;      // shards - 1
  bit<16> rail;            // that the slot belongs to (sap::rail_of)
  bit<16> group;           // multicast, to the children on that rail
  bit<1> children_are_switches;
  bit<1> inner;            // it has a parent
  @field_list(QUESTION) bit<8> parent_child;  // its number there
  port_t parent_port;

  bit<1> from_above;       // only a parent sends this type
  bit<16> source_rail;     // whose address the packet comes from
  bit<32> half;            // where in the registers
  bit<32> bit_of_child;
  bit<32> arrived;         // before and with this packet
  bit<1> ended;            // it takes part in no round
  bit<4> send;
  bit<2> values;
  bit<32> word;            // of a status or a refusal
  bit<16> lanes;           // of the half's round
  bit<16> count;           // a counter of the job, and one more
  bit<16> count_too;
  bit<16> device_count;
}

#endif
