// The way back to a switch: asks it now and then for a job like the one that was lost.
//
// Never waits: poll() moves one question or answer at most. Used by rank 0, from whatever thread
// the session is called.
#pragma once

#include <slime/switch_client.h>

#include <memory>
#include <optional>

#include "collnet/lease.h"

namespace slime {

class Reattachment {
 public:
  // `terms`: of the job that was lost, which is closed first if the switch still has it: its memory
  // is wanted again. `wanted`: the new job; nothing less will do. `pause_ns`: before the first try;
  // doubled for each that fails, up to kLongestPauseNs.
  Reattachment(const LeaseTerms& terms, control::CreateJob wanted, uint64_t pause_ns,
               uint64_t now_ns);
  ~Reattachment();  // gives back what was not taken
  Reattachment(const Reattachment&) = delete;
  Reattachment& operator=(const Reattachment&) = delete;

  static constexpr uint64_t kLongestPauseNs = 60'000'000'000;

  void poll(uint64_t now_ns);
  // What the switch has promised. The connection that the promise came over is its lease's.
  const std::optional<control::JobGrant>& grant() const { return grant_; }
  std::unique_ptr<SwitchClient> take_client() { return std::move(client_); }

 private:
  enum class Stage : uint8_t { kResting, kClosing, kCreating, kDone };

  Status ask(const control::Message& request, Stage stage);
  Status step();
  Status take_answer();
  void rest(uint64_t now_ns);

  const LeaseTerms terms_;
  const control::CreateJob wanted_;
  uint64_t pause_ns_;
  uint64_t due_ns_;
  Stage stage_ = Stage::kResting;
  std::unique_ptr<SwitchClient> client_;
  std::optional<control::JobGrant> grant_;
  Error error_;
  bool told_ = false;  // why a switch that answers gives us no job
};

}  // namespace slime
