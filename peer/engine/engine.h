// An engine: the NICs of this process, its registered memory, its peers, and the threads that serve
// them (service.h). Programs reach it through include/slime/slime.h.
//
// State: open from open() until it is destroyed. Set-up and tables are here; peers move their own
// links. Threads: any thread may call anything. mutex_ guards the lists of peers; the tables have
// their own locks.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "peer/engine/arrivals.h"
#include "peer/engine/completion.h"
#include "peer/engine/discovery.h"
#include "peer/engine/request_memory.h"
#include "peer/engine/service.h"
#include "peer/engine/sources.h"
#include "peer/engine/status_port.h"
#include "peer/engine/unexpected.h"

namespace slime {

struct EngineOptions {
  Settings settings;
  LinkTerms terms;
  double default_deadline = 30;  // seconds, of a request without one
  std::string name;              // that peers see; empty: host and process
  std::string discoverable;      // host and port (discovery.h); empty: not
  uint32_t threads = 1;          // that move what no caller moves; each peer has one of them
  // Call the program's functions (peer/engine/callbacks.cc). on_immediate may be nullptr: then
  // immediates that nobody expects are kept.
  std::function<void(const Ended&)> on_end;
  std::function<void(const UnexpectedImmediate&)> on_immediate;
};

// What comes with any request.
struct Terms {
  uint64_t deadline_ns = 0;  // 0: the engine's default
  Completion completion;
  bool more = false;  // it may begin with the next one
};

// What comes with a read or a write.
struct Extra {
  Terms terms;
  // For the peer, when all has been moved.
  std::optional<uint32_t> immediate;
  std::optional<std::span<const std::byte>> notification;
  bool borrows = false;  // the arrays stay as they are until it is done
};

// A notification of a peer; its bytes live until the handle is released.
struct Fetched {
  uint64_t peer = 0, handle = 0;
  std::span<const std::byte> bytes;
};

class Engine final : private ServiceHost {
 public:
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options);
  ~Engine() override;
  // All requests end. The program's functions may call in meanwhile, but nothing begins any more.
  void close();

  std::vector<std::byte> address() const;
  Result<uint64_t> add_peer(std::span<const std::byte> blob);
  // Its requests end, and its handles find nothing any more.
  Result<void> remove_peer(uint64_t peer);
  void attend(std::shared_ptr<Peer> peer) {
    if (!services_.empty()) services_[peer->thread()]->attend(std::move(peer));
  }
  std::shared_ptr<Peer> peer(uint64_t handle) const { return handles_.find(handle); }

  // Peers may list it if it has a name.
  Result<uint64_t> register_memory(const MemoryRange& range, const std::string& name);
  // The named regions of the peer. It waits.
  Result<std::vector<NamedRegion>> list_regions(uint64_t peer, uint64_t limit_ns);
  // A peer that has come, and that the program has not added. 0: none comes within this time.
  uint64_t accept(uint64_t limit_ns);
  // True: no rail knows the memory any more. False: requests of this engine use it still; ask
  // again.
  Result<bool> deregister(uint64_t region);
  Result<RegionBlob> advertise(uint64_t region) const;
  Result<uint64_t> import(uint64_t peer, std::span<const std::byte> blob);
  bool release(uint64_t handle);  // of a remote, a request, a plan or a notification

  Result<uint64_t> submit(uint64_t peer, Opcode opcode, std::span<const Assignment> assignments,
                          const Extra& extra);
  // A list of assignments that are looked up now, and moved later: all, or some.
  Result<uint64_t> prepare(uint64_t peer, std::span<const Assignment> assignments);
  Result<uint64_t> start(uint64_t plan, Opcode opcode,
                         std::optional<std::span<const uint32_t>> indices, const Extra& extra);
  Result<uint64_t> start_pages(uint64_t peer, Opcode opcode, const Pages& pages,
                               const Extra& extra);
  Result<uint64_t> notify(uint64_t peer, std::span<const std::byte> notification,
                          const Terms& terms);
  // `strong`: after all requests to this peer that came before, else at once.
  struct Addition {
    uint64_t remote = 0, offset = 0, add = 0;
    bool strong = false;
  };
  Result<uint64_t> signal(uint64_t peer, const Addition& addition, const Terms& terms);
  std::vector<Fetched> notifications(size_t most);
  // `peer`: Expectations::kAnyPeer for any.
  Result<uint64_t> expect(uint64_t peer, uint32_t immediate, uint64_t count, const Terms& terms);
  Result<void> forget(uint64_t peer, uint32_t immediate);
  // The bytes stay as they are until the request is done.
  Result<uint64_t> send(uint64_t peer, std::span<const std::byte> bytes, uint64_t tag,
                        const Terms& terms);
  // The first message of this peer (TaggedReceive::kAnyPeer: of any) whose tag is the same in all
  // bits of the mask.
  struct Wanted {
    uint64_t peer = 0, tag = 0, mask = 0;
  };
  Result<uint64_t> receive(const Wanted& wanted, std::span<std::byte> room, const Terms& terms);
  // kOk: it is done, with this outcome; kAgain: not yet.
  Result<Status> test(uint64_t request, Outcome* outcome);
  Result<Status> wait(uint64_t request, uint64_t limit_ns, Outcome* outcome);
  // It is overdue from now on, unless it has ended.
  Result<void> cancel(uint64_t request);
  // One that has ended and was submitted for that (Completion::By::kList).
  std::optional<Ended> next_completed();
  // Readable while there are things of these kinds (ReadyFd).
  Result<int> ready_descriptor(uint32_t kinds) { return ready_.descriptor(kinds); }
  // Whether this thread is in one of the program's functions: there it must not wait.
  static bool is_calling_back();

  const Devices& devices() const { return *devices_; }
  std::string status();  // for people (peer/engine/status.cc)

 private:
  // Where a request waits for what a peer sends; kNowhere: its peer moves it.
  enum class Posted : uint8_t { kNowhere, kExpectations, kTagged };
  struct Submitted {
    // Who moves it, or what it waits for; nullptr: it was posted for any peer. One from this engine
    // itself is moved by the end of the link that listens.
    std::shared_ptr<Peer> peer;
    std::shared_ptr<PeerRequest> request;
    Completion completion;
    Posted posted = Posted::kNowhere;
  };
  class Owner;
  static constexpr const char* kClosing = "the engine is being closed";
  static constexpr uint64_t kLongestWaitNs = uint64_t{1} << 60;  // 36 years: sums do not overflow

  explicit Engine(const EngineOptions& options);
  Result<void> set_up();
  Result<void> find_device();
  Result<void> check_rails() const;
  Result<void> open_pollers(std::vector<Poller*>* of_thread);
  Result<void> listen();
  Result<void> start_services();
  void make_world();
  template <typename Source>
  Result<void> fill(Source source, bool borrows, PeerRequest* request);
  template <typename Source>
  Result<uint64_t> submit_from(Source source, std::shared_ptr<Peer> peer,
                               std::shared_ptr<PeerRequest> request, const Extra& extra);
  Result<void> hold_regions(const Plan& plan, PeerRequest* request) const;
  std::shared_ptr<PeerRequest> new_request(const Terms& terms);
  Result<uint64_t> keep(const Submitted& submitted);
  void watch(const Submitted& submitted);
  Result<uint64_t> hand_over(std::shared_ptr<Peer> peer, std::shared_ptr<PeerRequest> request,
                             const Terms& terms);
  Result<Status> take_end(uint64_t handle, const Submitted& submitted, Outcome* outcome);
  void move(const Submitted& submitted);
  void move_or_expire(const Submitted& submitted);
  // Polls the link until the request is done, or for as long as its bytes and round trips take on
  // an idle link. Whether the link is looked after from then on.
  static bool spin(const Submitted& submitted, uint64_t begin_ns, uint64_t end_ns);
  void sleep(const Submitted& submitted, uint64_t end_ns);
  void end_posted(const Submitted& submitted, const Error& why);
  void end_all_posted(const Error& why);
  size_t call_back(size_t most);
  bool call_back_once();
  void end_if_gone(const std::shared_ptr<Peer>& peer, const Submitted& posted);
  void read_letter_of(uint64_t sender, const std::shared_ptr<PeerRequest>& request);
  void attend(std::span<const uint64_t> peers);
  // The first thread, which every engine has.
  void wake() {
    if (!services_.empty()) services_.front()->wake();
  }
  Result<std::shared_ptr<Peer>> known_peer(uint64_t peer) const;
  Result<std::shared_ptr<Peer>> peer_or_any(uint64_t peer) const;  // nullptr: any
  Result<Message> message_of(std::span<const std::byte> notification);
  Result<std::shared_ptr<const Letter>> letter_of(std::span<std::byte> memory,
                                                  std::shared_ptr<void> keeps);
  Result<std::shared_ptr<Region>> make_region(const MemoryRange& range,
                                              std::shared_ptr<void> keeps);
  uint64_t add_peer(const std::shared_ptr<Peer>& peer);
  std::vector<std::shared_ptr<Peer>> take_out(uint64_t peer);
  std::vector<std::shared_ptr<Peer>> leaving(const EngineId& id) const;  // under mutex_
  std::shared_ptr<Peer> itself();
  // Of the link to this engine itself; nullptr: of another peer.
  std::shared_ptr<Peer> listening_end_of(uint64_t peer);
  std::shared_ptr<Peer> peer_with_id(const EngineId& id, uint64_t* handle);
  // Of a link that has come; nullptr: the peer was removed since.
  std::shared_ptr<Peer> peer_that_let_in(const EngineWords& words);
  std::shared_ptr<Peer> find_or_make(const EngineId& id, uint64_t* handle);  // under mutex_

  std::vector<std::shared_ptr<Peer>> peers(uint32_t thread) override;
  std::shared_ptr<Peer> peer_with_tag(uint64_t tag) override;
  bool accept(bool* came) override;
  bool answer_callers() override;
  void call_back() override;
  uint64_t end_overdue(uint64_t now_ns) override;

  const EngineOptions options_;
  std::unique_ptr<Devices> devices_;
  Device* device_ = nullptr;
  int device_index_ = 0;
  EngineId id_ = {};
  std::vector<std::unique_ptr<Poller>> pollers_;
  PollerLists poller_lists_;  // of these
  std::unique_ptr<Owner> owner_;
  std::unique_ptr<PeerWorld> world_;
  std::unique_ptr<LinkListener> listener_;
  std::unique_ptr<DiscoveryPort> discovery_;  // nullptr: it is not discoverable
  std::unique_ptr<StatusPort> status_port_;   // nullptr: the system has none

  RequestMemory memory_;  // before the tables, and all that has requests
  // Before the tables: a peer that ends with them takes its name back.
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::weak_ptr<Peer>> by_tag_;
  SpareArray<Assignment> spare_;
  ReadyFd ready_;
  Arrivals arrivals_{ready_};
  NamedRegions named_regions_;
  UnexpectedImmediates unexpected_;
  Completions completions_;
  Expectations expectations_;
  Notices notices_{&ready_};
  Tagged tagged_;
  Regions regions_{HandleKind::kRegion};
  RemoteTable remotes_{HandleKind::kRemote};
  HandleTable<const Plan> plans_{HandleKind::kPlan};
  HandleTable<Submitted> requests_{HandleKind::kRequest};
  HandleTable<const Notice> fetched_{HandleKind::kNotice};
  HandleTable<Peer> handles_{HandleKind::kPeer};
  std::vector<std::pair<EngineId, uint64_t>> by_id_;                                 // handles
  std::unordered_map<uint64_t, std::shared_ptr<const std::atomic<bool>>> draining_;  // regions
  std::shared_ptr<Peer> itself_;  // the end that listens of a link to this engine itself
  uint64_t itself_handle_ = 0;    // no program has it
  std::vector<std::shared_ptr<Peer>> leaving_;  // removed, and perhaps not gone yet

  std::atomic<bool> closing_ = false;               // no request is taken any more
  std::vector<std::unique_ptr<Service>> services_;  // last: they end first
};

}  // namespace slime
