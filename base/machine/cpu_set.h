// A set of CPUs, for the placement of threads.
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
  // Parses a list as /sys has it: "0-3,8"; an empty text is an empty set. nullopt: the list is
  // malformed, or names a CPU beyond kMost.
  static std::optional<CpuSet> parse(std::string_view list);
  // The CPUs of the calling thread (sched_getaffinity(2)); empty if the kernel does not say.
  static CpuSet of_this_thread();

  bool empty() const { return cpus_.none(); }
  size_t count() const { return cpus_.count(); }
  bool contains(size_t cpu) const { return cpu < kMost && cpus_.test(cpu); }
  std::optional<size_t> first() const;
  bool is_within(const CpuSet& other) const { return (cpus_ & ~other.cpus_).none(); }
  std::string to_string() const;  // "0-3,8"
  bool add(int cpu);              // false: there is no such CPU

  // Restricts the thread to these CPUs. False: the kernel refused, or the set is empty.
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
