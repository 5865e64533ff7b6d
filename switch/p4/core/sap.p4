// The headers of SAP/2 and of what carries it, and the numbers in them: switch/protocol/sap.h in P4.
// test/p4/lint.py compares each width, offset and number with that file.
#ifndef SLIME_SAP_P4
#define SLIME_SAP_P4

#define SAP_MAGIC 0xA
#define SAP_VERSION 2
#define SAP_HEADER_BYTES 32
#define SAP_MAX_CHILDREN 32

#define SAP_CONTRIBUTION 1
#define SAP_RESULT 2
#define SAP_RESULT_AGAIN 3
#define SAP_PARTIAL 4
#define SAP_PARENT_RESULT 5
#define SAP_QUERY 6
#define SAP_STATUS 7
#define SAP_REJECT 8

#define SAP_I32 0
#define SAP_U32 1
#define SAP_I16 2
#define SAP_I8 3
#define SAP_I64 4
#define SAP_U8 6
#define SAP_U64 7
#define SAP_KNOWN_FORMATS 0xdf

#define SAP_SUM 0
#define SAP_MIN 1
#define SAP_MAX 2
#define SAP_OR 3

#define SAP_EXPONENTS_ONLY 1
#define SAP_KNOWN_FLAGS 3

#define SAP_NO_JOB 1
#define SAP_GENERATION 2
#define SAP_SOURCE 3
#define SAP_SLOT 4
#define SAP_SHAPE 5

header ethernet_h {
  bit<48> destination;
  bit<48> source;
  bit<16> type;
}

header arp_h {
  bit<16> hardware;
  bit<16> protocol;
  bit<8> hardware_bytes;
  bit<8> protocol_bytes;
  bit<16> operation;
  bit<48> sender_mac;
  bit<32> sender_ip;
  bit<48> target_mac;
  bit<32> target_ip;
}

header ipv4_h {
  bit<4> version;
  bit<4> words;  // of this header
  bit<8> traffic_class;
  bit<16> bytes;
  bit<16> identification;
  bit<16> fragment;  // flags and offset
  bit<8> ttl;
  bit<8> protocol;
  bit<16> checksum;
  bit<32> source;
  bit<32> destination;
}

header icmp_h {
  bit<8> type;
  bit<8> code;
  bit<16> checksum;
}

header udp_h {
  bit<16> source;
  bit<16> destination;
  bit<16> bytes;
  bit<16> checksum;
}

header sap_h {
  bit<4> magic;
  bit<4> version;
  bit<8> type;
  bit<4> format;
  bit<4> op;
  bit<8> flags;
  bit<16> job;
  bit<8> generation;
  bit<8> child;
  bit<32> token;
  bit<16> slot;
  bit<16> lanes;
  bit<32> epoch;
  bit<32> cookie;
  bit<8> exponent0;
  bit<8> exponent1;
  bit<8> special;
  bit<8> level;
  bit<32> check;
}

header word_h {
  bit<32> value;
}

#endif
