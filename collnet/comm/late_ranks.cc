#include "collnet/comm/late_ranks.h"

#include "base/log.h"
#include "settings/times.h"

namespace slime {
namespace {

constexpr uint64_t kNamedAgain = 4 * times::kSecond;  // of any rank
constexpr uint64_t kLasting = 10 * times::kSecond;

}  // namespace

void LateRanks::miss(const std::string& ranks, uint64_t waited_ns, uint64_t now_ns) {
  ranks_ = ranks;
  if (since_ns_ == 0) {
    since_ns_ = now_ns - waited_ns;
    ++waits_;
  }
  if (named_ns_ != 0 && now_ns - named_ns_ < kNamedAgain) return;
  named_ns_ = now_ns;
  SLIME_INFO("%s: rank %s has not contributed for %llu ms (wait %llu of this kind)", name_.c_str(),
             ranks.c_str(),
             static_cast<unsigned long long>((now_ns - since_ns_) / times::kMillisecond),
             static_cast<unsigned long long>(waits_));
}

void LateRanks::look(bool nobody, uint64_t now_ns) {
  if (nobody) {
    since_ns_ = 0;
    warned_ = false;
  }
  if (since_ns_ == 0 || warned_ || now_ns - since_ns_ < kLasting) return;
  warned_ = true;
  SLIME_WARN(
      "%s: rank %s has not contributed for %llu s; look at its log, and whether it is stopped",
      name_.c_str(), ranks_.c_str(),
      static_cast<unsigned long long>((now_ns - since_ns_) / times::kSecond));
}

}  // namespace slime
