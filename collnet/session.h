// A CollNet communicator: the ring of its members, and a share for each switch that they use
// together. Every operation is cut over the shares (spread.h).
//
// connect() succeeds at all members or at none: the members agree on it at the end, after each has
// seen one sum come back from every switch. If a switch goes away later, the members go on without
// it, and on it again when it is back (session_move.cc): operations under way end with the same
// bits, and NCCL sees no error. What is started then goes to the switches that are left, or, where
// none is, to the ranks.
//
// Thread rules: connect from NCCL's service thread, it waits; the rest from one thread. While
// nobody calls, the housekeeper looks after the session: another rank may still need what this one
// has.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collnet/report.h"
#include "collnet/ring.h"
#include "collnet/session_blobs.h"
#include "collnet/share.h"
#include "collnet/spread.h"
#include "settings/settings.h"

namespace slime {

class Session final : private DatagramUser, private Chore {
 public:
  // `advice`: which all_reduce are to come by CollNet, as a digest. Members that differ in it would
  // sooner or later choose different algorithms for one operation and hang, so they do not connect.
  static Result<std::unique_ptr<Session>> connect(Fabric& fabric, int device, Listener& listener,
                                                  std::span<const Handle> handles, uint32_t rank,
                                                  uint64_t advice = 0,
                                                  const CommOptions& options = {});
  ~Session() override;

  // kAgain: too many operations are outstanding.
  Status start(const Operation& operation, uint64_t* ticket);
  // Moves packets; whether the operation is done. Errors are for good: see failure().
  Status test(uint64_t ticket, bool* done);
  const Error& failure() const { return failure_; }
  const std::string& name() const { return team_.name; }
  WorkerReport report();  // any thread
  uint64_t results();     // of the report, without the rest

 private:
  // For a first sum over UDP, and for a first answer there.
  static constexpr uint64_t kTrialTimeoutNs = 5'000'000'000;

  Session(Fabric& fabric, std::string name);

  // When one share fails, all stop: the first reason counts.
  Status status() const { return failed_ ? failure_.status : Status::kOk; }
  void give_up(Error error);
  void adopt_failure();
  void start_held(uint64_t now_ns);
  void start_parts(const Operation& operation, uint64_t now_ns);
  bool done(uint64_t ticket) const;
  WorkerCounters counters() const;
  uint32_t lost_switches() const;
  void warn_of_missing(const std::string& ranks, uint64_t now_ns);
  void finish_move();
  void take_leave();
  void progress(uint64_t now_ns);
  void look_after(uint64_t now_ns);
  uint64_t attend(uint64_t now_ns) override;
  void on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                   uint64_t now_ns) override;
  Share& share_of(const sap::Header& header) const;

  // session_connect.cc
  using Member = SessionMember;
  using Grant = SessionGrant;  // where a job runs
  Result<void> set_up(int device, Listener& listener, std::span<const Handle> handles,
                      uint32_t rank);
  Result<void> check_settings() const;
  Result<void> prepare(int device);
  Result<void> open_rails(int device);
  Result<void> come_together(int device);
  Result<void> meet(int device, std::vector<Member>* members);
  Result<Member> own_member() const;
  Result<void> compare_versions();
  number::HalfBits common_half_bits(std::span<const Member> members) const;
  Result<void> compare_advice(std::span<const Member> members) const;
  Result<void> try_it();
  Result<void> agree(const Result<void>& own, const char* on);
  static Result<void> verdict(const Result<void>& own, std::span<const uint8_t> well,
                              const char* on);

  // session_rails.cc
  std::vector<UdpRail> rails_of_device(int device) const;
  void take(SessionAddresses addresses);
  Result<bool> all_rails_work();
  uint8_t answering_rails();
  void warn_of(const Share& share, uint32_t silent_rail) const;
  void hear_switches();

  // session_jobs.cc
  Result<void> find_place(std::span<const std::vector<NamedSwitch>> by_rank);
  // Of the jobs on all switches together.
  JobShape wanted_shape(std::span<const Member> members) const;
  uint32_t slots_of(const Share& share, const JobShape& shape) const;
  Result<std::vector<Grant>> obtain_jobs(std::span<const Member> members);
  Result<void> ask_switches(JobShape wanted, std::span<Grant> jobs);
  Result<void> ask_each(const JobShape& wanted, std::span<Grant> jobs);
  Result<std::vector<Grant>> obtain_part(std::span<const Member> members);
  Result<void> join(std::span<const Grant> jobs);

  // session_move.cc
  enum class Stage : uint8_t { kStill, kAnnouncing, kComparing };
  bool must_move(uint64_t now_ns) const;
  void begin_move();
  Result<void> announce();
  void continue_move(uint64_t now_ns);
  Result<void> next_stage(uint64_t now_ns);
  Result<void> compare();
  Result<void> move_shares(uint64_t now_ns);
  void spread_anew();
  Result<void> check_distinct() const;

  Fabric& fabric_;
  uint64_t advice_ = 0;
  CommOptions options_;
  uint64_t deadline_ns_ = 0;
  std::unique_ptr<Ring> ring_;
  Team team_;
  std::vector<std::unique_ptr<Share>> shares_;  // by switch; on a tree, one
  Spread spread_{Spread::PerSwitch{1}};
  uint64_t tickets_ = 0;         // given out
  std::vector<Operation> held_;  // the newest, not started yet: the shares move
  uint64_t look_ns_ = 0;         // when to look after the members again
  uint64_t results_ = 0;         // of the workers, then
  uint64_t lost_since_ns_ = 0;   // a neighbour has gone, and no result has come since; 0: no

  Stage stage_ = Stage::kStill;
  std::vector<Grant> announced_;  // by rank, each by share
  std::vector<uint32_t> epochs_;  // by rank, each by share, each by slot

  bool joined_ = false;  // there are workers
  bool failed_ = false;
  Error failure_;            // does not change any more when failed_ is set
  std::string missing_;      // ranks that were warned of last
  uint64_t missing_ns_ = 0;  // then

  std::mutex mutex_;        // guards all of the above, once connected
  uint64_t called_ns_ = 0;  // by NCCL, last
  bool connected_ = false;
};

}  // namespace slime
