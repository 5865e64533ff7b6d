// The way back to a switch: asks it now and then for a job like the one that was lost.
//
// On a tree, the first rank of each leaf has one, and they must ask at once: each leaf waits for
// the others for a few seconds only. So rank 0's stops when its leaf is there (ready()), and all of
// them ask when told to (go()).
//
// Never waits: poll() moves one question or answer at most. Used from whatever thread the session
// is called.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "collnet/lease.h"
#include "switch/protocol/client.h"

namespace slime {

class Reattachment {
 public:
  using Wanted = std::variant<control::CreateJob, control::JoinTree>;
  static constexpr uint64_t kWhenTold = UINT64_MAX;
  static constexpr uint64_t kLongestPauseNs = 60'000'000'000;
  // For all leaves of a tree to join: longer than the switches wait (jobs.tree_s), and 2 s.
  static constexpr uint64_t kTreeNs = 15'000'000'000;

  // `terms`: of the job that was lost, which is closed first if the switch still has it: its memory
  // is wanted again. `wanted`: the new job; nothing less will do. `pause_ns`: before the first try;
  // doubled for each that fails, up to kLongestPauseNs. kWhenTold: only go() begins one.
  Reattachment(const LeaseTerms& terms, Wanted wanted, uint64_t pause_ns, uint64_t now_ns);
  ~Reattachment();  // gives back what was not taken
  Reattachment(const Reattachment&) = delete;
  Reattachment& operator=(const Reattachment&) = delete;

  void poll(uint64_t now_ns);
  // The leaf is there; the others must be told.
  bool ready() const { return stage_ == Stage::kReady; }
  // To ask for a part of a tree of this name, from now on, until it is granted or refused or the
  // others cannot wait any more.
  void go(uint64_t tree, uint64_t now_ns);
  // What the switch has promised, some time ago: all who asked should have heard by then. The
  // connection that the promise came over is its lease's.
  bool has_come(uint64_t now_ns) const;
  const std::optional<control::JobGrant>& grant() const { return grant_; }
  std::unique_ptr<SwitchClient> take_client() { return std::move(client_); }
  // Others got something else, or nothing: gives it back, later tries again.
  void give_back(const Error& why, uint64_t now_ns);

 private:
  enum class Stage : uint8_t { kResting, kClosing, kReady, kAsking, kDone };

  Status ask(const control::Message& request, Stage stage);
  Status ask_for_job();
  Status step(uint64_t now_ns);
  Status take_answer(uint64_t now_ns);
  bool is_as_wanted(const control::JobGrant& grant) const;
  void complain(const Error& why);
  void fall_back(uint64_t now_ns);
  void rest(uint64_t now_ns);
  void start_over(uint64_t due_ns);

  LeaseTerms terms_;
  Wanted wanted_;
  const bool of_tree_;
  bool told_to_go_ = false;
  uint64_t pause_ns_;
  uint64_t due_ns_;
  uint64_t until_ns_ = 0;  // a tree that is not complete by then will not be
  uint64_t granted_ns_ = 0;
  Stage stage_ = Stage::kResting;
  std::unique_ptr<SwitchClient> client_;
  std::optional<control::JobGrant> grant_;
  Error error_;
  bool complained_ = false;  // once is enough
};

}  // namespace slime
