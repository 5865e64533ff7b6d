#include "switch/controller/numbers.h"

namespace slime::net {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

}  // namespace

JobNumbers::JobNumbers(uint16_t count, uint64_t seed) : entries_(size_t{count} + 1) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].generation = static_cast<uint8_t>(mixed(seed ^ mixed(i)));
  }
}

std::optional<JobNumber> JobNumbers::take(uint64_t now_ns) {
  const size_t count = entries_.size() - 1;
  for (size_t i = 0; i < count; ++i) {
    const auto job = static_cast<uint16_t>((last_ + i) % count + 1);
    if (entries_[job].used) continue;
    const auto generation = advance(job, now_ns);
    if (!generation) continue;
    entries_[job].used = true;
    last_ = job;
    return JobNumber{job, *generation};
  }
  return std::nullopt;
}

std::optional<uint8_t> JobNumbers::advance(uint16_t job, uint64_t now_ns) {
  if (wait_ns(job, now_ns) > 0) return std::nullopt;
  Entry& entry = entries_[job];
  entry.changed_ns = now_ns;
  entry.fresh = false;
  return ++entry.generation;
}

uint64_t JobNumbers::wait_ns(uint16_t job, uint64_t now_ns) const {
  const Entry& entry = entries_[job];
  const uint64_t since = now_ns - entry.changed_ns;
  return entry.fresh || since >= kSpacingNs ? 0 : kSpacingNs - since;
}

}  // namespace slime::net
