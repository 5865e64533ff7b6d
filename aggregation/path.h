// Where a Context's operations go: over the switch, or in one of the debugging modes.
#pragma once

#include <slime/aggregation.h>

#include <memory>
#include <vector>

#include "collnet/comm/coll_comm.h"
#include "collnet/comm/report.h"
#include "collnet/worker/worker.h"
#include "message/comm.h"
#include "settings/settings.h"

namespace slime::aggregation {

// States: open until an error, which is final (failure()). Thread rules: one call at a time.
class Path {
 public:
  virtual ~Path() = default;
  // kAgain: Worker::kMaxOperations are outstanding. Tickets count up.
  virtual Status start(const Operation& operation, uint64_t* ticket) = 0;
  // Moves packets. Errors are for good: see failure().
  virtual Status test(uint64_t ticket, bool* done) = 0;
  virtual const Error& failure() const = 0;
  virtual uint64_t results() = 0;  // packets so far: whether anything moves
  virtual WorkerReport report() = 0;
};

// Operations over the switch: devices of this Context's own, and a session.
//
// States: listening, from open(); connected, from a connect() that succeeds. Only then operations
// may be started.
class SwitchPath final : public Path {
 public:
  // In two steps, because between them the ranks exchange their handles.
  static Result<std::unique_ptr<SwitchPath>> open(const Settings& settings, int device,
                                                  Handle* handle);
  Result<void> connect(std::span<const Handle> handles, uint32_t rank);

  Status start(const Operation& operation, uint64_t* ticket) override {
    return session_->start(operation, ticket);
  }
  Status test(uint64_t ticket, bool* done) override { return session_->test(ticket, done); }
  const Error& failure() const override { return session_->failure(); }
  uint64_t results() override { return session_->results(); }
  WorkerReport report() override { return session_->report(); }

 private:
  SwitchPath() = default;

  int device_ = 0;
  std::unique_ptr<Devices> devices_;  // outlives what follows
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<CollComm> session_;
};

// What a Context runs with.
struct Opened {
  std::unique_ptr<Path> path;
  Settings settings;
  Mode mode = Mode::kNormal;
};
Result<Opened> open_path(const Options& options);

// The settings that a Context runs with: the environment's, and over them what the options say.
// Options and environment go through one parser, so a sentence names the setting that an option
// stands for. What is unknown in the environment becomes a warning in the log, in the options an
// error.
Result<Settings> settings_of(const Options& options, const Environment& environment);

}  // namespace slime::aggregation
