// Round to nearest even, denormals kept, no traps, for as long as this lives. The thread belongs to
// a process that may have asked for something else, such as torch.set_flush_denormal(True); ranks
// would differ in their results.
#pragma once

#ifndef __x86_64__
#include <cfenv>
#endif

namespace slime::number {

#ifdef __x86_64__

class FloatEnvironment {
 public:
  FloatEnvironment() : before_(__builtin_ia32_stmxcsr()) {
    if (!is_default()) __builtin_ia32_ldmxcsr(kDefault);
  }
  ~FloatEnvironment() {
    if (!is_default()) __builtin_ia32_ldmxcsr(before_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  // Intel SDM volume 1, 10.2.3: all exceptions masked. The low six bits report past exceptions.
  static constexpr unsigned kDefault = 0x1f80, kReports = 0x3f;
  bool is_default() const { return (before_ & ~kReports) == kDefault; }

  unsigned before_;
};

#else

class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&before_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t before_;
};

#endif

}  // namespace slime::number
