// A CollNet communicator: the ring of its members, and the job on the switch that they share.
//
// connect() succeeds at all members or at none: the members agree on it at the end, after each has
// seen one sum come back from the switch. If the switch goes away later, the members go on without
// it, and on it again when it is back (session_move.cc): operations under way end with the same
// bits, and NCCL sees no error.
//
// Thread rules: connect from NCCL's service thread, it waits; the rest from one thread. While
// nobody calls, the housekeeper looks after the session: another rank may still need what this one
// has.
#pragma once

#include <slime/settings.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collnet/lease.h"
#include "collnet/reattachment.h"
#include "collnet/report.h"
#include "collnet/ring.h"
#include "collnet/session_blobs.h"
#include "collnet/udp_rails.h"
#include "collnet/worker.h"
#include "switch/core/shard.h"

namespace slime {

class Session final : private DatagramUser, private net::Outbox, private Chore {
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
  const Error& failure() const { return worker_->failure(); }
  const std::string& name() const { return name_; }
  WorkerReport report();  // any thread
  uint64_t results();     // of the report, without the rest

 private:
  // For a first sum over UDP, and for a first answer there.
  static constexpr uint64_t kTrialTimeoutNs = 5'000'000'000;

  Session(Fabric& fabric, std::string name);

  void finish_move();
  void take_leave();
  void progress(uint64_t now_ns);
  void look_after(uint64_t now_ns);
  uint64_t attend(uint64_t now_ns) override;
  void on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                   uint64_t now_ns) override;
  void send(const net::Outgoing& packet, std::span<const SocketAddress> to) override;

  // session_connect.cc
  using Member = SessionMember;
  using Grant = SessionGrant;  // where the job runs
  Result<void> set_up(int device, Listener& listener, std::span<const Handle> handles,
                      uint32_t rank);
  Result<void> check_settings() const;
  Result<void> open_rails(int device);
  Result<void> come_together(int device);
  Result<void> meet(int device, std::vector<Member>* members);
  Result<Member> own_member() const;
  Result<void> compare_versions();
  number::HalfBits common_half_bits(std::span<const Member> members) const;
  Result<void> compare_advice(std::span<const Member> members) const;
  Result<void> obtain_job(std::span<const Member> members, Grant* grant);
  control::CreateJob job_of_all() const;
  control::CreateJob wanted_job(std::span<const Member> members) const;
  Result<control::JobGrant> ask_for_job(std::span<const Member> members);
  static Grant grant_of(const control::JobGrant& grant);
  Result<void> join(const Grant& grant);
  Result<void> try_it();
  Result<void> agree(const Result<void>& own, const char* on);
  static Result<void> verdict(const Result<void>& own, std::span<const uint8_t> well,
                              const char* on);

  // session_rails.cc
  std::vector<UdpRail> rails_of_device(int device) const;
  void take(SessionAddresses addresses);
  std::span<const SocketAddress> on_rail(uint32_t rail) const;
  Result<bool> all_rails_work(const Grant& grant);
  uint8_t answering_rails();
  void leave_job();
  void drop_lost_rails();

  // session_tree.cc
  Result<void> find_place(std::span<const Member> members);
  Result<void> obtain_part(std::span<const Member> members, Grant* grant);
  bool is_tree() const { return job_.branches.size() > 1; }
  // Who asks the switch that this rank is below.
  uint32_t leader() const { return job_.branches[job_.branch].ranks.front(); }
  control::JoinTree part_of(control::CreateJob job, uint64_t tree) const;
  Result<control::JobGrant> ask_for_part(std::span<const Member> members);
  Result<void> check_parts(std::span<const Grant> grants) const;

  // session_move.cc
  enum class Stage : uint8_t { kStill, kAnnouncing, kComparing };
  bool must_move(uint64_t now_ns) const;
  bool is_stuck();
  void begin_move();
  Result<Grant> announcement() const;
  void continue_move(uint64_t now_ns);
  Result<void> next_stage(uint64_t now_ns);
  Result<void> compare();
  Result<void> leave_switch(uint64_t now_ns);
  Result<void> return_to_switch(const Grant& grant, uint64_t now_ns);
  void seek_switch(uint64_t now_ns);
  control::CreateJob lost_job() const;
  Result<void> serve();

  Fabric& fabric_;
  std::shared_ptr<Housekeeper> keeper_;
  const std::string name_;  // "CollNet on eth0, rank 1 of 4"
  uint64_t advice_ = 0;
  CommOptions options_;
  uint64_t deadline_ns_ = 0;
  SocketAddress control_address_;
  std::string data_name_;  // where the switch takes packets, for messages
  Credentials who_;
  std::unique_ptr<Ring> ring_;
  std::unique_ptr<UdpRails> port_;
  std::unique_ptr<Worker> worker_;
  WorkerOptions job_;           // what the worker was made with
  SessionAddresses members_;    // rail by rail, each by rank
  std::optional<Lease> lease_;  // rank 0's; in a tree, of the first at each leaf
  uint64_t look_ns_ = 0;        // when to look after the members again
  uint64_t results_ = 0;        // of the worker, then
  uint64_t lost_since_ns_ = 0;  // a neighbour has gone, and no result has come since; 0: no

  Stage stage_ = Stage::kStill;
  std::vector<uint32_t> epochs_;  // of the slots, by rank
  std::vector<Grant> announced_;  // by rank; that of rank 0 says where to
  uint64_t tree_ = 0;             // the name of the job on a tree, or of the newest try for one
  std::unique_ptr<net::Shard> served_;  // slots that this rank sums up for all: there is no switch
  std::optional<Reattachment> way_back_;  // rank 0's, then; in a tree, of the first at each leaf
  uint32_t retries_ = 0;                  // moves from ranks to ranks, while only
  uint64_t retried_at_ = 0;               // so many bytes were done
  uint64_t pause_ns_ = 0;                 // before it is tried
  uint64_t arrived_ns_ = 0;               // on the switch, last

  std::mutex mutex_;        // guards all of the above, once connected
  uint64_t called_ns_ = 0;  // by NCCL, last
  bool connected_ = false;
};

}  // namespace slime
