// What a worker is made with, and what it counts.
#pragma once

#include <cstdint>
#include <vector>

#include "collnet/payload/payload.h"
#include "collnet/worker/branches.h"
#include "collnet/worker/job_route.h"
#include "collnet/worker/retransmission.h"
#include "switch/core/counters.h"

namespace slime {

struct WorkerOptions {
  JobRoute route = {};                // at first
  uint8_t child = 0;                  // at its switch
  uint32_t rank = 0;                  // in the job
  uint32_t contributors = 1;          // ranks of the job, at all switches
  std::vector<Branch> branches = {};  // to name missing ranks; empty: child i is rank i
  uint32_t branch = 0;                // that of this rank
  uint32_t slots = 64;
  uint32_t lanes = 256;  // 32-bit words per packet
  number::HalfBits half_bits = number::HalfBits::k32;
  uint32_t formats = sap::kKnownFormats;  // that all switches of the job add up; the same at all
  bool guesses = true;                    // of exponents (stages.h); the same at all
  RoundTrip::Limits round_trip;
  uint64_t suspect_ns = 300'000'000;  // then the switch is asked which ranks are missing
  uint64_t switch_timeout_ns =
      2'000'000'000;  // of observed time without a packet: the switch is lost
  uint64_t request_timeout_ns = 1'800'000'000'000;  // of one round: then the job has failed
};

// X(name, help)
#define SLIME_WORKER_COUNTERS(X)                                      \
  X(operations, "operations started, the trial included")             \
  X(sent, "packets sent, retransmissions included")                   \
  X(timeouts, "times that no result came in time")                    \
  X(retransmitted, "packets sent again")                              \
  X(results, "results accepted")                                      \
  X(stale, "results of other rounds, dropped")                        \
  X(foreign, "datagrams that are not of this job, dropped")           \
  X(wrong_token, "datagrams of this job with another token, dropped") \
  X(corrupt, "results that were found damaged, dropped")              \
  X(exponent_rounds, "rounds for exponents alone")                    \
  X(guess_rounds, "rounds with exponents as before")                  \
  X(wrong_guesses, "of these, rounds that found other exponents")     \
  X(flag_rounds, "rounds for NaN and infinities")                     \
  X(fine_rounds, "rounds for exponents of single elements")           \
  X(upper_rounds, "rounds for the upper words of 64-bit integers")    \
  X(queries, "questions to the switch about missing ranks")           \
  X(bytes, "payload bytes of operations that are complete")

SLIME_DECLARE_TOTALS(WorkerCounters, SLIME_WORKER_COUNTERS)

}  // namespace slime
