// Counters of a switch: a table X(name, help) is all that has to be written for a new one. It
// becomes a struct that counts and a struct of sums, and reports, metrics and slime-switchctl ask
// the sums for names and texts (each()).
#pragma once

#include "base/metrics.h"

#define SLIME_COUNTER_MEMBER(name, help) Counter name;
#define SLIME_TOTAL_MEMBER(name, help) uint64_t name = 0;
#define SLIME_TOTAL_ADD(name, help) name += counters.name.get();
#define SLIME_TOTAL_GIVE(name, help) take(#name, help, name);

// `Counters` has one writer and any readers. `Totals` are plain numbers; each() calls
// take(const char* name, const char* help, uint64_t& value) for all of them, in order.
#define SLIME_DECLARE_COUNTERS(Counters, Totals, TABLE)           \
  struct alignas(64) Counters {                                   \
    TABLE(SLIME_COUNTER_MEMBER)                                   \
  };                                                              \
  struct Totals {                                                 \
    TABLE(SLIME_TOTAL_MEMBER)                                     \
    void add(const Counters& counters) { TABLE(SLIME_TOTAL_ADD) } \
    template <typename Take>                                      \
    void each(Take&& take) {                                      \
      TABLE(SLIME_TOTAL_GIVE)                                     \
    }                                                             \
    template <typename Take>                                      \
    void each(Take&& take) const {                                \
      TABLE(SLIME_TOTAL_GIVE)                                     \
    }                                                             \
  };
