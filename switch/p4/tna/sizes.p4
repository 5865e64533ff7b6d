// Of the switch for Tofino: its packets, registers and tables.
#ifndef SLIME_TNA_SIZES_P4
#define SLIME_TNA_SIZES_P4

#define LANES 32      // of a packet; lanes.p4, parser.p4 and headers.p4 are written for it
#define HALVES 16384  // of slots, of all jobs together; those of even rounds come first
#define JOBS 64
#define MEMBERS 128   // two for each job
#define SOURCES 4096  // addresses of the children of all jobs
#define COUNTS_OF_REJECTS 2  // sent, spared

#endif
