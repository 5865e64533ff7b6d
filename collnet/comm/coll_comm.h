// A CollNet communicator, as NCCL calls it: operations are started, and tested until they are done.
// It has a ring of its members, and an attachment to each switch that they use together. Every
// operation is cut over the attachments (Spread).
//
// connect() (setup.h) succeeds at all members or at none: the members agree on it at the end, after
// each has seen a sum come back right from every switch. If a switch is lost later, the members go
// on without it, and on it again when it is back (Fallback): operations under way end with the same
// bits, and NCCL sees no error. What is started then goes to the switches that are left, or, where
// none is, to the ranks.
//
// States: connecting, connected, failed (for good). The destructor waits for the other members.
//
// Thread rules: connect from NCCL's service thread, it waits; the rest from one thread. While
// NCCL calls nothing, the housekeeper makes progress: another rank may still need a result that
// only this one has. So every public function takes the mutex.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collnet/comm/fallback.h"
#include "collnet/comm/late_ranks.h"
#include "collnet/comm/report.h"
#include "collnet/comm/setup.h"

namespace slime {

class CollComm final : private DatagramUser, private BackgroundTask {
 public:
  // `advice`: which all_reduce are to come by CollNet, as a digest. Members that differ in it would
  // sooner or later choose different algorithms for one operation and hang, so they do not connect.
  static Result<std::unique_ptr<CollComm>> connect(Devices& devices, int device, Listener& listener,
                                                   std::span<const Handle> handles, uint32_t rank,
                                                   uint64_t advice = 0,
                                                   const CommOptions& options = {});
  ~CollComm() override;

  // kAgain: too many operations are outstanding.
  Status start(const Operation& operation, uint64_t* ticket);
  // Moves packets; whether the operation is done. Errors are for good: see failure().
  Status test(uint64_t ticket, bool* done);
  const Error& failure() const { return failure_; }
  const std::string& name() const { return config_->name; }
  WorkerReport report();  // any thread
  uint64_t results();     // of the report, without the rest

 private:
  explicit CollComm(Setup& setup);

  // When one attachment fails, all stop: the first reason counts.
  Status status() const { return failed_ ? failure_.status : Status::kOk; }
  void give_up(Error error);
  void start_held(uint64_t now_ns);
  void start_parts(const Operation& operation, uint64_t now_ns);
  bool done(uint64_t ticket) const;
  WorkerCounters counters() const;
  void progress(uint64_t now_ns);
  void move(uint64_t now_ns);
  void check_members(uint64_t now_ns);
  uint64_t run_due(uint64_t now_ns) override;
  void on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                   uint64_t now_ns) override;
  void start_trial();
  bool trial_came(const SwitchAttachment& attachment) const;
  Result<void> try_sums(uint64_t left_ns);
  Result<void> leave_silent_switches(uint64_t left_ns);
  // By rank: an Outcome.
  enum Outcome : uint8_t { kFailed, kCame, kSilent };
  using Outcomes = std::vector<uint8_t>;
  Result<Outcomes> gather_outcomes(const Result<void>& own, const Deadline& deadline);
  Result<void> agree_on_trial(const Deadline& deadline);
  // Receives and answers until `ended`, a second at most.
  template <typename Condition>
  void serve_until(Condition ended);
  void wait_for_members();

  const Clock& clock_;
  const std::unique_ptr<Ring> ring_;
  const std::unique_ptr<CommConfig> config_;
  Attachments attachments_;
  Spread spread_{Spread::PerSwitch{1}};
  Fallback fallback_;
  std::vector<std::vector<int32_t>> trial_;  // sums of connect(), by attachment, until all are done
  uint64_t trial_ticket_ = 0;
  uint64_t tickets_ = 0;         // given out
  std::vector<Operation> held_;  // the newest, not started yet: the attachments move
  uint64_t check_ns_ = 0;        // when to check the members again
  uint64_t results_ = 0;         // of the workers, then
  uint64_t member_lost_ns_ = 0;  // a neighbour has gone, and no result has come since; 0: no
  bool failed_ = false;
  Error failure_;  // does not change any more when failed_ is set
  LateRanks late_;

  std::mutex mutex_;        // guards all of the above, once connected
  uint64_t called_ns_ = 0;  // by NCCL, last
  bool connected_ = false;
};

}  // namespace slime
