// What is behind a Context.
#pragma once

#include <slime/aggregation.h>

#include <mutex>
#include <string>

#include "aggregation/open.h"
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

// From the codes of this project to those of the public header.
constexpr Code code_of(Status status) {
  switch (status) {
    case Status::kOk:
      return Code::kOk;
    case Status::kAgain:
      return Code::kWouldBlock;
    case Status::kInvalid:
      return Code::kInvalid;
    case Status::kConfig:
      return Code::kConfig;
    case Status::kSystem:
      return Code::kSystem;
    case Status::kRemote:
      return Code::kRemote;
    case Status::kTimeout:
      return Code::kTimeout;
    case Status::kNoMemory:
      return Code::kNoMemory;
    case Status::kUnsupported:
      return Code::kUnsupported;
    case Status::kInternal:
      return Code::kInternal;
  }
  return Code::kInternal;
}

inline Outcome outcome_of(const Error& error) { return {code_of(error.status), error.what}; }

// Warnings go to stderr unless set_log() was called.
void ensure_log();

// The counters of a worker, in the form of the public header.
Statistics statistics_of(const WorkerReport& report);
std::string json_text_of(const WorkerReport& report);

}  // namespace slime::aggregation
