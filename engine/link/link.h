// All rails between two endpoints as one link: picks rails, posts in batches, polls, and survives
// the death of rails while one lives.
//
// A rail that fails is fenced at both ends before anything that may have been lost is sent again:
// each end closes its own channel and then tells the other so over a surviving rail (kFenced). Only
// when both have done so are the works of the dead rail repeated elsewhere, so no late write of the
// dead rail can land in memory that has been reused. After that the active end tries to get the
// rail back over a new channel, again and again while the link lives. link_rail.h has the states.
//
// Data path: link.cc. Shares of the rails: link_shares.cc. Death of a rail: failover.cc. Its
// return: rejoin.cc.
//
// Threads: as a comm, one at a time. Every wait has a deadline: a silent rail rail_timeout, a try
// to get one back kJoinTimeout, a request request_timeout.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/fabric.h"
#include "engine/link/immediate.h"
#include "engine/link/link_parts.h"
#include "engine/link/link_rail.h"
#include "engine/link/rail_choice.h"
#include "engine/link/stripes.h"

namespace slime {

// Where the JoinRecords of a rail lie.
struct JoinRecordPlaces {
  const std::byte* from_peer;  // in our inbox
  const Outbox* outbox;
  size_t offset;  // of ours, in the outbox
};

// The end of a link (sender or receiver), as the link sees it.
class LinkUser {
 public:
  virtual ~LinkUser() = default;
  // A work of the peer arrived; of control works only kCredit, kSeen, kWanted.
  virtual Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) = 0;
  // A work of ours is done. False: not expected (a repeated completion), nothing changed.
  virtual bool on_sent(const WorkId& cookie, uint64_t* bytes) = 0;
  // This end has fenced this life of a rail. A user whose peer needs a record of what arrived fills
  // in the write that takes it there over `bearer`; the others leave `work` as it is.
  virtual void fence_record(const RailLife& life, size_t bearer, Work* work) = 0;
  // Both ends have fenced this life: submit again what the rail still owed.
  virtual Status on_fenced(const RailLife& life) = 0;
  virtual JoinRecordPlaces join_records(size_t rail) const = 0;
  // Fills in a write of kProbeBytes that shows what a rail delivers. An end that sends no stripes
  // leaves `work` as it is.
  virtual void fill_probe(size_t rail, Work* work) const = 0;
};

class Link {
 public:
  Link(Fabric& fabric, Device& device, std::string peer, bool active, LinkUser& user,
       int traffic_class = kNoTrafficClass);
  ~Link();  // folds the counters into the fabric
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Set-up: channels in the order both ends agreed on.
  void add_rail(LinkChannel channel);
  void warm_up();

  size_t rail_count() const { return rails_.size(); }
  size_t up_count() const { return up_count_; }
  bool up(size_t rail) const { return rails_[rail].up(); }
  bool ordered(size_t rail) const { return rails_[rail].ordered; }
  size_t device_rail(size_t rail) const { return rails_[rail].key_index; }
  // What this rail has carried has arrived, or nothing can stop it any more. If that is not known,
  // the rail is asked.
  bool has_delivered(size_t rail);
  uint64_t rejoins() const { return rejoins_; }  // rails that have returned so far
  // Works that are queued or in flight, or rails that may return.
  bool has_work() const { return up_count_ < rails_.size() || busy_ != 0; }
  bool busy() const { return busy_ != 0; }  // works of ours are queued or in flight
  // Works that may still be submitted; some places are kept for control works.
  uint32_t room(size_t rail) const {
    const uint32_t room = rails_[rail].queue.room();
    return room > kControlRoom ? room - kControlRoom : 0;
  }
  const StripeLimits& stripe_limits() const { return stripe_limits_; }
  // A write of a record of ours; its immediate and cookie are still to be filled in.
  Work write_of(const Outbox& outbox, size_t offset, size_t bytes, size_t rail) const;
  uint64_t local_key(size_t rail, const MemoryRegion* region) const {
    return region->keys[rails_[rail].key_index].local;
  }
  uint64_t remote_key(size_t rail, const MemoryRegion* region) const {
    return region->keys[rails_[rail].key_index].remote;
  }

  // The rail that would be done first with a small work. At least one rail must be up.
  size_t pick(uint64_t bytes) {
    if (up_count_ > 1) favourite_ = loads_.quickest(bytes, favourite_);
    return favourite_;
  }
  // The rail for a stripe, the first of `waiting` bytes; kNoRail: let it wait. `whole`: it is a
  // message of its own.
  size_t pick_for_stripe(uint64_t bytes, uint64_t waiting, bool whole);
  // Lazy: the NIC is not touched. The caller has checked room(rail).
  void submit(size_t rail, const Work& work) {
    rails_[rail].queue.push(work);
    loads_.submitted(rail, work.length);
    busy_ |= bit(rail);
    if (!work.unconfirmed) {
      if (rails_[rail].confirmed++ == 0) rails_[rail].busy_since_ns = attended_ns_;
    } else if (!(unproven_ & bit(rail))) {
      begin_unproven(rail);
    }
  }
  void submit_control(ControlOp op, uint32_t value) {
    if (up_count_ > 0) (void)submit_control(pick(0), op, value, Work());
  }

  // For a small message that somebody waits for: posts at once where nothing is in flight, instead
  // of at the next call of progress().
  void hurry(size_t rail) {
    if (rails_[rail].queue.in_flight() == 0) flush(rail, false);
  }

  // Polls, runs completions, posts what the rules let out, on every rail that is up.
  Status progress();
  // Posts what was submitted since the poll of progress().
  void post_more();
  // The end of the link: every later call returns this error.
  Status fail(Error error);
  Status fail_protocol(const char* what);
  // Fails the link when nothing has happened on it for the request time-out.
  Status check_deadline(uint64_t started_ns, const char* waits_for, uint64_t bytes);
  void count_retry(size_t rail) { rails_[rail].channel->counters.retries.add(); }
  Status status() const { return failure_.status; }
  const Error& failure() const { return failure_; }

  uint64_t now_ns() const { return now_ns_; }
  const std::string& peer() const { return peer_; }
  Device& device() const { return device_; }
  const Settings& settings() const { return fabric_.settings(); }

 private:
  uint64_t submit_control(size_t rail, ControlOp op, uint32_t value, Work work);
  Errand send_errand(ControlOp op, const RailLife& life);
  enum class Probe : uint8_t { kPlain, kWithBytes, kAsk };
  void probe(size_t rail, Probe probe);
  void answer_probe(size_t rail);
  void read_clock();
  Status progress_rail(size_t rail);
  void flush(size_t rail, bool now_known);
  Status poll_rail(size_t rail);
  Status handle(size_t rail, const Done& done);
  void handle_sent(size_t rail, const Done& done);
  bool control_sent(LinkRail& rail, uint64_t cookie, uint64_t* bytes);
  Status handle_control(size_t rail, uint32_t immediate);
  RailLife life_of(size_t rail) const { return {static_cast<uint32_t>(rail), rails_[rail].epoch}; }
  const char* name_of(const LinkRail& rail) const { return rail.rail->caps().name.c_str(); }

  std::string unanswered_deaths() const;

  static uint32_t bit(size_t rail) { return 1u << rail; }
  uint32_t rails_to_look_at();
  void set_up(size_t rail);
  void set_down(size_t rail);

  // link_shares.cc
  void update_load(size_t rail);
  void observe(size_t rail);
  void judge_rails();
  void check_overdue();
  void limit_stripes();
  void warn_of_slow_rail();
  double expected_share(const LinkRail& rail) const;
  static double share(const LinkRail& rail);
  bool recently_measured(const LinkRail& rail) const;

  // failover.cc
  Status fail_rail(size_t rail, Error why);
  Error with_carrier(LinkRail& rail, Error why) const;
  Status take_last_arrivals(size_t rail);
  Status take_arrivals_of_joins();
  void send_notice(size_t rail);
  void finish_errand(size_t bearer, uint64_t cookie);
  void drop_errands(size_t dead_rail);
  Status on_rail_word(ControlOp op, const RailLife& life);
  Status on_peer_fenced(const RailLife& life);
  Status settle(size_t rail);
  Status watch_silence(size_t rail);
  void begin_unproven(size_t rail);
  void prove_rails();
  Status watch_carriers();

  // rejoin.cc
  Status progress_dead_rails();
  uint64_t least_pause_ns() const;
  void plan_try(LinkRail& rail);
  bool may_try(const LinkRail& rail) const;
  void begin_join(size_t rail);
  void grant_join(size_t rail);
  bool open_again(size_t rail);
  void send_join(size_t rail);
  Status on_join(const RailLife& life);
  Status on_skipped(const RailLife& life);
  void end_skipped(size_t rail);
  void on_joined(const RailLife& life);
  void on_retry(uint32_t rail);
  void carrier_returned(size_t rail);
  Status step_join(size_t rail);
  Status give_join_up(size_t rail, const std::string& why);
  void bring_up(size_t rail);

  Fabric& fabric_;
  Device& device_;
  const std::string peer_;
  const bool active_;
  const int traffic_class_;  // of channels that replace dead ones, as of the first
  LinkUser& user_;
  std::vector<LinkRail> rails_;
  RailLoads loads_;  // of rails_
  size_t up_count_ = 0;
  size_t favourite_ = 0;   // of small works; the only rail that is up, if there is one only
  uint32_t busy_ = 0;      // rails with works queued or in flight, a bit each
  uint32_t hot_ = 0;       // rails on which something arrived lately
  uint32_t unproven_ = 0;  // rails that carried unconfirmed works since their last probe
  size_t next_cold_ = 0;   // the others are looked at by turns
  uint64_t overdue_due_ns_ = 0;
  double least_latency_ns_ = 0;  // of the rails; 0: not known
  bool stripes_wait_ = false;    // for a rail with room
  bool had_stripes_ = false;     // since rails were last judged
  StripeLimits stripe_limits_;
  uint64_t now_ns_ = 0;
  uint64_t last_activity_ns_ = 0;
  // Time in which this end looked at its rails. It does not run on while nobody calls: what was not
  // looked for is no silence.
  uint64_t attended_ns_ = 0;
  const uint64_t silence_ns_;
  const uint64_t first_pause_ns_;  // of tries to get a rail back; 0: none
  uint64_t carriers_due_ns_ = 0;
  bool warned_of_carrier_ = false;
  uint64_t rejoins_ = 0;
  std::array<Done, 64> done_;  // what poll returned; here so that no call has to clear it
  Error failure_{Status::kOk, 0, {}};
};

}  // namespace slime
