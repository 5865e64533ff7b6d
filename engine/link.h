// All rails between two endpoints as one link: picks rails, posts in batches, polls, and survives
// the death of rails while one lives.
//
// A rail that fails is fenced at both ends before anything that may have been lost is sent again:
// each end closes its own channel and then tells the other so over a surviving rail (kFenced). Only
// when both have done so are the works of the dead rail repeated elsewhere, so no late write of the
// dead rail can land in memory that has been reused. A dead rail stays out of its link; new links
// try it again.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/cookie.h"
#include "engine/fabric.h"
#include "engine/immediate.h"
#include "engine/post_queue.h"
#include "transports/rail.h"

namespace slime {

// The end of a link (sender or receiver), as the link sees it.
class LinkUser {
 public:
  virtual ~LinkUser() = default;
  // A work of the peer arrived (never kControl with kProbe or kFenced).
  virtual Status on_arrived(uint32_t immediate, uint64_t bytes) = 0;
  // A work of ours is done. False: not expected (a repeated completion), nothing changed.
  virtual bool on_sent(const Cookie& cookie, uint64_t* bytes) = 0;
  // This end has fenced `rail`. A user whose peer needs a record of what arrived fills in the write
  // that takes it there over `carrier`; the others leave `work` as it is.
  virtual void fence_record(size_t rail, size_t carrier, Work* work) = 0;
  // Both ends have fenced `rail`: submit again what it still owed.
  virtual Status on_fenced(size_t rail) = 0;
};

inline constexpr uint32_t kControlRoom = 64;

// The control works of a rail that are queued or in flight, each in a place of its own. A
// completion that comes twice finds another generation in its place.
struct ControlWorks {
  uint64_t open = 0;  // a bit per place
  std::array<uint32_t, kControlRoom> generation = {};
  std::array<uint32_t, kControlRoom> bytes = {};
};

struct LinkRail {
  LinkRail(std::unique_ptr<Channel> channel_in, Rail* rail_in, size_t key_index_in,
           const PostPolicy& policy)
      : channel(std::move(channel_in)), rail(rail_in), key_index(key_index_in), queue(policy) {}

  std::unique_ptr<Channel> channel;
  Rail* rail;
  size_t key_index;  // this rail's place in MemoryRegion::keys
  PostQueue queue;
  bool up = true;
  bool peer_fenced = false;       // the peer said so
  bool settled = false;           // both ends have fenced, and the lost works were repeated
  size_t notice_rail = 0;         // where our kFenced for this rail travels
  bool notice_sent = false;       // and whether it arrived
  uint64_t busy_since_ns = 0;     // nothing has completed since, though something is in flight
  uint64_t suspect_since_ns = 0;  // another rail has answered a probe since; 0: not suspected
  uint64_t probed_ns = 0;         // when the newest probe was submitted
  bool probing = false;           // and whether its answer is still to come
  ControlWorks controls;
};

class Link {
 public:
  Link(Fabric& fabric, Device& device, std::string peer, LinkUser& user);
  ~Link();  // folds the counters into the fabric
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Set-up: channels in the order both ends agreed on.
  void add_rail(std::unique_ptr<Channel> channel, size_t device_rail);
  void warm_up();

  size_t rail_count() const { return rails_.size(); }
  size_t up_count() const { return up_count_; }
  bool up(size_t rail) const { return rails_[rail].up; }
  // Works that are queued or in flight.
  bool has_work() const {
    return std::any_of(rails_.begin(), rails_.end(), [](const LinkRail& rail) {
      return rail.queue.queued() + rail.queue.in_flight() > 0;
    });
  }
  // Works that may still be submitted; some places are kept for control works.
  uint32_t room(size_t rail) const {
    const uint32_t room = rails_[rail].queue.room();
    return room > kControlRoom ? room - kControlRoom : 0;
  }
  uint64_t max_work_bytes() const { return max_work_bytes_; }
  uint64_t local_key(size_t rail, const MemoryRegion* region) const {
    return region->keys[rails_[rail].key_index].local;
  }
  uint64_t remote_key(size_t rail, const MemoryRegion* region) const {
    return region->keys[rails_[rail].key_index].remote;
  }

  // The rail that would be done first with `bytes` more, among those not in `exclude` (bit set).
  // At least one such rail must be up.
  size_t pick(uint64_t bytes, uint64_t exclude = 0);
  // Lazy: the NIC is not touched. The caller has checked room(rail).
  void submit(size_t rail, const Work& work) { rails_[rail].queue.push(work); }
  void submit_control(ControlOp op, uint32_t value) {
    if (up_count_ > 0) submit_control(pick(0), op, value, Work());
  }

  // For a small message that somebody waits for: posts at once where nothing is in flight, instead
  // of at the next call of progress().
  void hurry(size_t rail) {
    if (rails_[rail].queue.in_flight() == 0) flush(rail);
  }

  // Polls, runs completions, posts what the rules let out, on every rail that is up.
  Status progress();
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
  void submit_control(size_t rail, ControlOp op, uint32_t value, Work work);
  void probe(size_t rail);
  Status progress_rail(size_t rail);
  void flush(size_t rail);
  Status poll_rail(size_t rail);
  Status handle(size_t rail, const Done& done);
  void handle_sent(size_t rail, const Done& done);
  void begin_busy(LinkRail& rail) {
    rail.busy_since_ns = now_ns_;
    rail.suspect_since_ns = 0;
  }
  bool control_sent(LinkRail& rail, const Cookie& cookie, uint64_t* bytes);
  Status handle_control(uint32_t immediate);
  uint64_t backlog_ns(const LinkRail& rail, uint64_t bytes) const;

  // failover.cc
  Status fail_rail(size_t rail, const Error& why);
  Status take_last_arrivals(size_t rail);
  void send_notice(size_t rail);
  void resend_notices(size_t dead_rail);
  Status on_peer_fenced(uint32_t rail);
  Status settle(size_t rail);
  Status watch(size_t rail);

  Fabric& fabric_;
  Device& device_;
  const std::string peer_;
  LinkUser& user_;
  std::vector<LinkRail> rails_;
  size_t up_count_ = 0;
  size_t next_rail_ = 0;  // round robin on ties
  uint64_t max_work_bytes_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t last_activity_ns_ = 0;
  uint64_t silence_ns_ = 0;
  std::array<Done, 64> done_;  // what poll returned; here so that no call has to clear it
  Error failure_{Status::kOk, 0, {}};
};

}  // namespace slime
