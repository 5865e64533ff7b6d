// The leader's side of a job on a switch: Lease keeps a job alive there, and Reattachment asks a
// lost switch for a new one.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/housekeeper.h"
#include "switch/protocol/client.h"

namespace slime {

struct LeaseTerms {
  Addresses addresses;  // of the switch's control channel
  Credentials who;
  control::JobRef job;
  uint32_t lease_ms = 0;
};

// Keeps a job alive on its switch by heartbeats, and closes it at the end.
//
// States: renewing, until let_lapse(); then lapsing: no heartbeats, and the job is not closed.
//
// Threads: run_due() runs in the housekeeper's; let_lapse() may be called meanwhile. All else
// belongs to the communicator's thread.
class Lease final : private BackgroundTask {
 public:
  Lease(LeaseTerms terms, std::unique_ptr<SwitchClient> client,
        std::shared_ptr<Housekeeper> keeper);
  ~Lease() override;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  // The switch is lost: no more heartbeats, and the job is not closed at the end. Never waits.
  void let_lapse() { lapsing_ = true; }
  const LeaseTerms& terms() const { return terms_; }

 private:
  uint64_t run_due(uint64_t now_ns) override;
  Result<control::JobState> renew();

  const LeaseTerms terms_;
  std::unique_ptr<SwitchClient> client_;
  std::atomic<bool> lapsing_{false};
  bool warned_ = false;
  const std::shared_ptr<Housekeeper> keeper_;
};

// Asks a lost switch now and then for a job like the one that was lost.
//
// States:
//   pausing     until the next try
//   closing     connected, and the job that was lost is closed
//   leaf ready  on a tree, the leaf answers; waits until the ranks have agreed to ask (ask_now())
//   asking      for the job; on a tree, again and again until all leaves have been asked
//   granted     the grant and the connection wait to be taken, or are given back
// On a tree, the first rank of each leaf has one, and they must ask at once: each leaf waits for
// the others for a few seconds only. So rank 0's stops when its leaf is there (leaf_ready()), the
// ranks move, and in that move all of them call ask_now().
//
// Never waits: poll() moves one question or answer at most. Thread rules: one thread, the
// communicator's.
class Reattachment {
 public:
  static constexpr uint64_t kWhenTold = UINT64_MAX;

  // `terms`: of the job that was lost, which is closed first if the switch still has it: its memory
  // is wanted again. `wanted`: the new job, of which only the part counts if there is one branch;
  // nothing less will do. `pause_ns`: before the first try; doubled for each that fails, up to
  // times::kLongestReattachPause. kWhenTold: only ask_now() begins one.
  Reattachment(const LeaseTerms& terms, control::JoinTree wanted, uint64_t pause_ns,
               uint64_t now_ns);
  ~Reattachment();  // gives back what was not taken
  Reattachment(const Reattachment&) = delete;
  Reattachment& operator=(const Reattachment&) = delete;

  void poll(uint64_t now_ns);
  // The leaf answers: the ranks can move, to ask all leaves at once.
  bool leaf_ready() const { return stage_ == Stage::kLeafReady; }
  // To ask for a part of a tree of this name, from now on, until it is granted or refused or the
  // others cannot wait any more.
  void ask_now(uint64_t tree, uint64_t now_ns);
  // Whether the switch has granted a job. On a tree the grant must also be kAllLeavesAnswer old, so
  // that every leaf has answered. The connection that the grant came over is its lease's.
  bool granted(uint64_t now_ns) const;
  const std::optional<control::JobGrant>& grant() const { return grant_; }
  std::unique_ptr<SwitchClient> take_client() { return std::move(client_); }
  // Others got something else, or nothing: gives it back, later tries again.
  void give_back(const Error& why, uint64_t now_ns);

 private:
  enum class Stage : uint8_t { kPausing, kClosing, kLeafReady, kAsking, kGranted };

  Status ask(const control::Message& request, Stage stage);
  Status ask_for_job();
  Status step(uint64_t now_ns);
  Status take_answer(uint64_t now_ns);
  void warn_once(const Error& why);
  void retry_or_pause(uint64_t now_ns);
  void pause(uint64_t now_ns);
  void disconnect(uint64_t due_ns);

  LeaseTerms terms_;
  control::JoinTree wanted_;
  const bool of_tree_;
  bool told_to_ask_ = false;
  uint64_t pause_ns_;
  uint64_t due_ns_;
  uint64_t until_ns_ = 0;  // a tree that is not complete by then will not be
  uint64_t granted_ns_ = 0;
  Stage stage_ = Stage::kPausing;
  std::unique_ptr<SwitchClient> client_;
  std::optional<control::JobGrant> grant_;
  Error error_;
  bool warned_ = false;  // once is enough
};

}  // namespace slime
