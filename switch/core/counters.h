// Counters of a switch or a worker: a table X(name, help) is all that has to be written for a new
// one. It becomes a struct of sums and, where other threads read, a struct that counts. Reports,
// metrics and slime-switchctl ask the sums for names and texts (each()).
#pragma once

#include "base/metrics.h"

#define SLIME_COUNTER_MEMBER(name, help) Counter name;
#define SLIME_TOTAL_MEMBER(name, help) uint64_t name = 0;
#define SLIME_TOTAL_PLUS(name, help) name += more.name;
#define SLIME_TOTAL_ADD(name, help) name += counters.name.get();
#define SLIME_TOTAL_GIVE(name, help) take(#name, help, name);

#define SLIME_TOTALS_BODY(Totals, TABLE)   \
  TABLE(SLIME_TOTAL_MEMBER)                \
  Totals& operator+=(const Totals& more) { \
    TABLE(SLIME_TOTAL_PLUS)                \
    return *this;                          \
  }                                        \
  template <typename Take>                 \
  void each(Take&& take) {                 \
    TABLE(SLIME_TOTAL_GIVE)                \
  }                                        \
  template <typename Take>                 \
  void each(Take&& take) const {           \
    TABLE(SLIME_TOTAL_GIVE)                \
  }

// Plain numbers; each() calls take(const char* name, const char* help, uint64_t& value) for all of
// them, in order.
#define SLIME_DECLARE_TOTALS(Totals, TABLE) \
  struct Totals {                           \
    SLIME_TOTALS_BODY(Totals, TABLE)        \
  };

// `Counters` has one writer and any readers; `Totals` are the sums of such.
#define SLIME_DECLARE_COUNTERS(Counters, Totals, TABLE)           \
  struct alignas(64) Counters {                                   \
    TABLE(SLIME_COUNTER_MEMBER)                                   \
  };                                                              \
  struct Totals {                                                 \
    SLIME_TOTALS_BODY(Totals, TABLE)                              \
    void add(const Counters& counters) { TABLE(SLIME_TOTAL_ADD) } \
  };
