// A set of CPUs, and where a thread runs.
#pragma once

#include <pthread.h>

#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace slime {

class CpuSet {
 public:
  static constexpr size_t kMost = 8192;  // as many as Linux can have (NR_CPUS)

  CpuSet() = default;
  // As /sys writes it: "0-3,8"; an empty text is an empty set. Nothing: it is malformed, or names a
  // CPU beyond kMost.
  static std::optional<CpuSet> parse(std::string_view list);
  // Where the calling thread may run (sched_getaffinity(2)); empty if the kernel does not say.
  static CpuSet of_this_thread();

  bool empty() const { return cpus_.none(); }
  size_t count() const { return cpus_.count(); }
  bool contains(size_t cpu) const { return cpu < kMost && cpus_.test(cpu); }
  std::optional<size_t> first() const;
  bool is_within(const CpuSet& other) const { return (cpus_ & ~other.cpus_).none(); }
  std::string to_string() const;  // "0-3,8"
  bool add(int cpu);              // false: there is no such CPU

  // The thread runs on no other CPU from now on. False: the kernel refused, or the set is empty.
  bool apply_to(pthread_t thread) const;

  CpuSet operator&(const CpuSet& other) const { return CpuSet(cpus_ & other.cpus_); }
  CpuSet operator|(const CpuSet& other) const { return CpuSet(cpus_ | other.cpus_); }
  bool operator==(const CpuSet& other) const = default;

 private:
  using Bits = std::bitset<kMost>;
  explicit CpuSet(const Bits& cpus) : cpus_(cpus) {}

  Bits cpus_;
};

}  // namespace slime
