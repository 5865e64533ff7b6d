#include "base/machine/cpu_set.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/text.h"

namespace slime {
namespace {

// The argument of the kernel's calls, for as many CPUs as a CpuSet has. One cpu_set_t is too small.
using Mask = std::array<cpu_set_t, CpuSet::kMost / CPU_SETSIZE>;

// The first and the last of "4-7", or "4".
std::optional<std::pair<size_t, size_t>> parse_range(std::string_view range) {
  const size_t dash = std::min(range.find('-'), range.size());
  const auto first = parse_whole<size_t>(range.substr(0, dash));
  const auto last = dash == range.size() ? first : parse_whole<size_t>(range.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= CpuSet::kMost) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace

// A comma at the end is malformed, as are empty ranges.
std::optional<CpuSet> CpuSet::parse(std::string_view list) {
  CpuSet set;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const auto range = parse_range(list.substr(0, comma));
    if (!range) return std::nullopt;
    for (size_t cpu = range->first; cpu <= range->second; ++cpu) set.cpus_.set(cpu);
    if (comma == list.npos) break;
    list.remove_prefix(comma + 1);
    if (list.empty()) return std::nullopt;
  }
  return set;
}

CpuSet CpuSet::of_this_thread() {
  CpuSet set;
  Mask mask{};
  if (sched_getaffinity(0, sizeof mask, mask.data()) != 0) return set;
  for (size_t cpu = 0; cpu < kMost; ++cpu) {
    if (CPU_ISSET_S(cpu, sizeof mask, mask.data())) set.cpus_.set(cpu);
  }
  return set;
}

std::optional<size_t> CpuSet::first() const {
  for (size_t cpu = 0; cpu < kMost; ++cpu) {
    if (cpus_.test(cpu)) return cpu;
  }
  return std::nullopt;
}

std::string CpuSet::to_string() const {
  std::string text;
  for (size_t cpu = 0; cpu < kMost; ++cpu) {
    if (!cpus_.test(cpu)) continue;
    const size_t first = cpu;
    while (cpu + 1 < kMost && cpus_.test(cpu + 1)) ++cpu;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (cpu > first) text += "-" + std::to_string(cpu);
  }
  return text;
}

bool CpuSet::add(int cpu) {
  if (cpu < 0 || static_cast<size_t>(cpu) >= kMost) return false;
  cpus_.set(static_cast<size_t>(cpu));
  return true;
}

bool CpuSet::apply_to(pthread_t thread) const {
  if (empty()) return false;
  Mask mask{};
  for (size_t cpu = 0; cpu < kMost; ++cpu) {
    if (cpus_.test(cpu)) CPU_SET_S(cpu, sizeof mask, mask.data());
  }
  return pthread_setaffinity_np(thread, sizeof mask, mask.data()) == 0;
}

}  // namespace slime
