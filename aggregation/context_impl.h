// What is behind a Context.
#pragma once

#include <slime/aggregation.h>

#include <mutex>
#include <string>

#include "aggregation/path.h"
#include "base/error.h"
#include "collnet/comm/report.h"

namespace slime::aggregation {

// States: open -> failed, or abandoned after an operation that was not done in time; both are final
// and failure_ says why. Any thread may call; the mutex guards the path, and is not held while a
// thread waits.
class Context::Impl {
 public:
  Impl(const Options& options, Opened opened);
  ~Impl();

  Outcome start(const Reduction& reduction, Request* request);
  Outcome run(const Reduction& reduction, double timeout_s);
  Outcome test(const Request& request, bool* done);
  Outcome wait(const Request& request, double timeout_s);
  WorkerReport report() const;
  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return ranks_; }

 private:
  Outcome check(const Reduction& reduction) const;
  Operation operation_of(const Reduction& reduction) const;
  // These two with the mutex held; the others take it.
  Outcome try_start(const Reduction& reduction, Request* request);
  Outcome step(uint64_t ticket, bool* done, uint64_t* results);

  template <typename Step>
  Outcome repeat_until(uint64_t deadline_ns, const char* late_text, Step step);
  Outcome wait_until(const Request& request, uint64_t deadline_ns);
  Outcome start_until(const Reduction& reduction, Request* request, uint64_t deadline_ns);
  Outcome abandon(Outcome why);
  uint64_t deadline_of(double timeout_s) const;
  Outcome late(const char* what) const;

  const uint32_t rank_, ranks_;
  const Mode mode_;
  const double timeout_s_;  // of an operation

  mutable std::mutex mutex_;    // guards what follows
  std::unique_ptr<Path> path_;  // nullptr: abandoned
  WorkerReport last_report_;    // of a path that is gone
  Outcome failure_;             // for good
  uint64_t newest_ = 0;         // id of a Request; 0: none yet
};

// The codes of the public header are in the order of ours.
static_assert(static_cast<int>(Code::kWouldBlock) == static_cast<int>(Status::kAgain) &&
              static_cast<int>(Code::kInvalid) == static_cast<int>(Status::kInvalid) &&
              static_cast<int>(Code::kConfig) == static_cast<int>(Status::kConfig) &&
              static_cast<int>(Code::kSystem) == static_cast<int>(Status::kSystem) &&
              static_cast<int>(Code::kRemote) == static_cast<int>(Status::kRemote) &&
              static_cast<int>(Code::kTimeout) == static_cast<int>(Status::kTimeout) &&
              static_cast<int>(Code::kNoMemory) == static_cast<int>(Status::kNoMemory) &&
              static_cast<int>(Code::kUnsupported) == static_cast<int>(Status::kUnsupported) &&
              static_cast<int>(Code::kInternal) == static_cast<int>(Status::kInternal));
inline Outcome outcome_of(const Error& error) {
  return {static_cast<Code>(error.status), error.what};
}

}  // namespace slime::aggregation
