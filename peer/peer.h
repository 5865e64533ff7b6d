// Another engine, and the link to it.
//
// States
//   kNew          known by its address. It is connected when the first request comes
//   kConnecting   this end dials, or waits for the link that the peer dials
//   kUp           the link works, perhaps without a rail for a while (link/lifeline)
//   kGone         it cannot be reached; report() says why, and requests end with that. It may
//                 be dialed again by its address, or connect by itself. Not after leave(): then
//                 its link lives on until the peer knows that it ends, for kTellNs and
//                 kLongestFarewellNs at most, and there is no other one
//
// Threads: any. One at a time has the lock, and moves the link with the requests that others have
// handed over. A thread that does not get the lock leaves a mark (missed_) and goes on: the holder
// looks for it after it has given the lock back, or has the service look. Only set-up waits for the
// lock.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "link/setup/setup.h"
#include "peer/blobs.h"
#include "peer/directory.h"
#include "peer/keys.h"
#include "peer/messages/barriers.h"
#include "peer/moving/mover.h"
#include "peer/owner.h"
#include "peer/polling_threads.h"
#include "peer/records.h"

namespace slime {

class Peer;

// What all peers of an engine share.
struct PeerWorld {
  Devices& devices;
  int device = 0;
  EngineId self = {};
  Nonce proof = {};  // EngineWords::proof of this engine
  LinkTerms terms;
  Messages::To messages;
  std::pmr::memory_resource* memory;  // for lists of requests
  const PollerLists& pollers;
  // From now on pollers call the link of this peer so; nullptr: nobody's any more.
  std::function<void(uint64_t tag, Peer* peer)> name;
  std::function<void(std::shared_ptr<Peer>)> attend;  // by the service, at once
  std::function<void(uint64_t peer)> came;            // this one, which the program does not know
  const NamedRegions& named_regions;
  const std::string own_name;            // of this engine
  const std::vector<std::byte> address;  // of this engine, as programs have it
  uint32_t eras = 0;                     // that have begun; under the engine's lock
};

class Peer final : public std::enable_shared_from_this<Peer>, private LinkEnd {
 public:
  // After something came the service polls for so long, before it leaves that to pollers. A thread
  // that waits polls for so long for each round trip.
  static constexpr uint64_t kSpinNs = 20'000;
  // After that the service looks at the link now and then for so long, so that the next request
  // need not wake it.
  static constexpr uint64_t kAttendedNs = 1'000'000'000;
  // After leave() the farewell waits so long at most for the peer to know what has become of its
  // messages. Then the peer has so long to end the link, from the last byte on, and in all.
  static constexpr uint64_t kTellNs = 100'000'000, kFarewellNs = 200'000'000,
                            kLongestFarewellNs = 800'000'000;

  static constexpr size_t kMostNameBytes = 255;

  enum class State : uint8_t { kNew, kConnecting, kUp, kGone };

  // `before`: peers with this id that have been told to leave. They end when this one has a link.
  Peer(PeerWorld& world, const EngineId& id, std::vector<std::shared_ptr<Peer>> before = {})
      : world_(world),
        id_(id),
        era_(++world.eras),
        owner_(world.self, world.proof, world.terms, world.pollers, EngineOwner::Wanted{id, era_}),
        before_(std::move(before)),
        messages_(world.messages) {}
  ~Peer() override;

  const EngineId& id() const { return id_; }
  // Another one for each peer that the engine has known, so that the other end can tell whether
  // this is the peer that it had a link to before.
  uint32_t era() const { return era_; }
  // Of the engine's threads, the one that calls serve().
  uint32_t thread() const { return thread_of(era_, world_.pollers); }
  void set_handle(uint64_t handle) { handle_ = handle; }  // before it has a link
  State state() const { return state_.load(std::memory_order_acquire); }
  // Why it is gone; the rails of its link.
  struct Report {
    State state = State::kNew;
    std::string gone_because;
    uint32_t rails = 0, rails_up = 0;
    size_t requests = 0;                // that are open
    std::string rail_text;              // a line for each
    std::string name;                   // "": it has not said it yet
    std::vector<std::byte> address;     // empty: it is not known yet
    uint64_t round_trip_ns = 0;         // 0: it is not known yet
    uint64_t works = 0, doorbells = 0;  // RailCounters, of all rails of the link
  };
  Report report();

  // From the program. A link that somebody else has made in this peer's name ends, and one that is
  // gone may be dialed again. False: it has been told to leave.
  bool learn_address(const LinkAddress& address);
  // An engine that names this proof wants to connect. kCome: nothing is dialed while it does.
  enum class Admission : uint8_t { kCome, kCrossing, kNotTheOne };
  Admission admit(const Nonce& proof);
  void connect();                                 // begins; needs the address
  void attach(std::unique_ptr<LinkParts> parts);  // it has connected, unless in another's name
  // It has dialed again for this link.
  void resume(const LinkId& link, std::unique_ptr<LifelineStream> stream);
  bool has_link(const LinkId& link);
  // Ends all requests, tells the peer, and ends the link; there is no other link after it. The
  // caller has the service call serve(), or calls try_move(), until has_left().
  void leave(Error why);
  bool has_left() const { return has_left_.load(std::memory_order_acquire); }
  // The same, for removed_here(), and the link ends now.
  void end_leaving();
  static Error removed_here();  // the reason of a peer that its program has removed

  // Begins the request at once if no other thread moves the peer, else that thread does. Returns as
  // try_move().
  bool submit(std::shared_ptr<PeerRequest> request);
  // The same, with the next submit() or try_move().
  void hand(std::shared_ptr<PeerRequest> request);
  // Moves what can be moved, unless another thread does. Never waits. `spins`: the caller polls
  // again at once, so the link is not armed; after the last such call it calls without, unless
  // threads_suffice(). False: no poller, thread or service looks at the link from now on; have
  // the service do so.
  bool try_move(bool spins = false);
  // Which threads of the program poll the link.
  PollingThreads& polling() { return polling_; }
  // They do often, and little is under way: the link need not be armed. Much would stand still when
  // the program does something else before it waits.
  bool threads_suffice() const { return polling_.suffice() && light_; }
  // For the service. When it wants the next call.
  enum class Next : uint8_t {
    kNow,
    kSetUp,            // for the next step of set-up, or of the end
    kSoon,             // no poller names it
    kPolledElsewhere,  // after PollingThreads::kCheckNs: threads of the program poll it
    kNowAndThen,       // for deadlines of requests, rails that are silent or may return
    kWhenNamed,        // not before a poller or attend() names it
  };
  Next serve(uint64_t now_ns);

 private:
  // Of one link. The order of destruction: what uses the link, then the link.
  struct Connection {
    Connection(PeerWorld& world, LinkParts parts, Messages& messages, uint64_t number,
               const EngineId& peer)
        : id(parts.id),
          link(world.devices, *world.devices.device(world.device), std::move(parts)),
          rings(link),
          records(rings.engine),
          keys(link, records, world.messages.regions),
          directory(link, records, world.named_regions, peer),
          mover(rings, keys, messages, number, world.memory) {}
    const LinkId id;
    Link link;
    Rings rings;
    Records records;
    Keys keys;
    Directory directory;
    Mover mover;
  };

  Status on_arrived(size_t rail, uint32_t immediate, uint64_t bytes) override;
  OutboxPiece fence_record(const RailLife& life) override {
    return connection_->rings.report(life);
  }
  Status on_both_fenced(const RailLife& life) override;
  Status on_farewell(std::span<const std::byte> payload);
  Status on_address(std::span<const std::byte> payload);
  Status on_name(std::span<const std::byte> payload);
  Status on_taken(std::span<const std::byte> payload);
  void introduce();

  // A thread that waits for the lock.
  class Hold {
   public:
    explicit Hold(Peer& peer) : peer_(peer) { peer_.lock_.lock(); }
    ~Hold() {
      if (peer_.leave_lock()) peer_.world_.attend(peer_.shared_from_this());
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Peer& peer_;
  };

  bool try_enter();
  bool leave_lock();
  bool has_handed();
  void move();
  void move_all();
  bool arm();
  void disarm();
  bool is_looked_after();
  bool has_pollers() const;
  bool has_open_work() const;
  bool wants_link() const { return !waiting_.empty() || !messages_.idle() || !barriers_.idle(); }
  Next next_call(uint64_t now_ns, bool found);
  uint64_t traffic() const { return connection_ == nullptr ? 0 : connection_->link.traffic(); }
  void take_handed();
  void drop_connection();
  void drop_crossed();
  void expire_waiting(uint64_t now_ns);
  void begin(std::shared_ptr<PeerRequest> request);
  Requests open_requests() const;
  void release_barriers(uint64_t now_ns);
  bool go_on_with_returned();
  void move_link();
  Status take_records();
  Status take_record(const Record& record);
  Status take_messages();
  void give_link_up();
  void dial();
  void await_dialed();
  void await_no_more();
  void step_connector();
  void set_up(std::unique_ptr<LinkParts> parts, uint32_t era_there);
  bool leaves() const { return leaving_since_ns_ != 0; }
  void say_farewell(uint64_t now_ns);
  bool is_farewell_over(uint64_t now_ns);
  void end_with_link();
  void end_waiting(const Error& why);
  void end(Error why);
  void set_state(State state) { state_.store(state, std::memory_order_release); }

  PeerWorld& world_;
  const EngineId id_;
  const uint32_t era_;
  const EngineOwner owner_;  // of the links that this end dials
  uint64_t handle_ = 0;
  std::atomic<State> state_ = State::kNew;
  std::atomic<bool> has_left_ = false;

  PollingThreads polling_;

  std::mutex handing_;                                // guards these two
  std::vector<std::shared_ptr<PeerRequest>> handed_;  // that no thread has taken yet
  bool missed_ = false;  // a thread wanted the lock, and did not get it

  mutable Mutex lock_;                               // guards what follows
  std::vector<std::shared_ptr<PeerRequest>> taken_;  // of handed_, for a moment
  std::optional<LinkAddress> address_;
  std::optional<Nonce> proof_;  // that the peer has named when it dialed
  std::string name_;            // that it has told
  bool known_ = false;          // to the program, or it will accept the peer
  std::unique_ptr<LinkConnector> connector_;
  std::unique_ptr<Connection> connection_;
  // Both ends dial, and that of the lower id is taken. This one came here first: it lives until the
  // other end has changed to the link that this end dials, or is taken if nothing comes of that.
  std::unique_ptr<LinkParts> crossed_;
  uint64_t crossed_until_ns_ = 0;
  std::atomic<bool> armed_ = false;  // pollers name the link
  std::atomic<bool> light_ = true;   // Mover::is_light()
  bool attended_ = false;            // the service calls serve() again by itself
  uint64_t traffic_ = 0, hot_until_ns_ = 0, attended_until_ns_ = 0;
  uint64_t links_ = 0;      // that there were
  uint64_t redial_ns_ = 0;  // kConnecting without a connector: the peer dials until then
  // When leave() was called, the farewell was said, and a byte was seen last after that; 0: not
  // yet.
  uint64_t leaving_since_ns_ = 0, farewell_ns_ = 0, last_byte_ns_ = 0;
  bool peer_left_ = false;  // the peer has said farewell
  std::vector<std::shared_ptr<Peer>> before_;
  std::vector<std::shared_ptr<PeerRequest>> waiting_;  // for the link
  Messages messages_;
  Barriers barriers_;
  Error gone_{Status::kOk, 0, {}};
};

}  // namespace slime
