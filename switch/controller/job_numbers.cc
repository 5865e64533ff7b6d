#include "switch/controller/job_numbers.h"

#include "base/random.h"
#include "settings/times.h"

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

Result<uint32_t> draw_token() {
  auto token = random_number<uint32_t>();
  while (token && *token == 0) token = random_number<uint32_t>();
  return token;
}

JobNumbers::JobNumbers(uint16_t first, uint16_t count, uint64_t seed)
    : first_(first), entries_(count) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].generation = static_cast<uint8_t>(mixed(seed ^ mixed(first + i)));
  }
}

std::optional<JobNumber> JobNumbers::take(uint64_t now_ns) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const size_t at = (next_ + i) % entries_.size();
    const auto job = static_cast<uint16_t>(first_ + at);
    if (entries_[at].used) continue;
    const auto generation = advance(job, now_ns);
    if (!generation) continue;
    entries_[at].used = true;
    next_ = at + 1;
    return JobNumber{job, *generation};
  }
  return std::nullopt;
}

std::optional<uint8_t> JobNumbers::advance(uint16_t job, uint64_t now_ns) {
  if (wait_ns(job, now_ns) > 0) return std::nullopt;
  Entry& changed = entry(job);
  changed.changed_ns = now_ns;
  changed.fresh = false;
  return ++changed.generation;
}

uint64_t JobNumbers::wait_ns(uint16_t job, uint64_t now_ns) const {
  const Entry& changed = entries_[job - first_];
  const uint64_t since = now_ns - changed.changed_ns;
  return changed.fresh || since >= times::kJobNumberSpacing ? 0 : times::kJobNumberSpacing - since;
}

}  // namespace slime::net
