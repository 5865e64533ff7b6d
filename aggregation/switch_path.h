// Operations over the switch: a fabric of this Context's own, and a session.
#pragma once

#include <memory>
#include <vector>

#include "aggregation/path.h"
#include "collnet/session.h"
#include "engine/comm.h"
#include "settings/settings.h"

namespace slime::aggregation {

class SwitchPath final : public Path {
 public:
  // In two steps, because between them the ranks tell each other their handles.
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
  std::unique_ptr<Fabric> fabric_;  // outlives what follows
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Session> session_;
};

}  // namespace slime::aggregation
