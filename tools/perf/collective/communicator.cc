#include "tools/perf/collective/communicator.h"

#include <sched.h>

#include <cstring>
#include <list>
#include <map>
#include <span>

#include "base/clock.h"
#include "tools/common/bytes.h"
#include "tools/perf/collective/worker.h"
#include "tools/perf/values.h"

namespace slime::perf {
namespace {

constexpr auto kSimple = static_cast<size_t>(Protocol::kSimple);
constexpr nccl::NetCommConfig kNoTrafficClass{nccl::kTrafficClassUndefined};

struct Key {
  int peer, channel;
  auto operator<=>(const Key&) const = default;
};
// A connection to come: to a peer (no listener), or from one.
struct Pending {
  Key key;
  void* listener = nullptr;
  HandleBytes handle{};
};
// A list, as handles must stay where they are: plugins may keep the state of an attempt in them.
using PendingList = std::list<Pending>;

// Each rank finds those that are for it under its own number.
std::string name_of_handle(const Key& key) {
  return std::to_string(key.peer) + "/" + std::to_string(key.channel);
}

std::string names_of(const PendingList& pending, const std::string& before) {
  std::string text;
  for (const Pending& one : pending) {
    text += before + " rank " + std::to_string(one.key.peer) + " (channel " +
            std::to_string(one.key.channel) + ")";
  }
  return text;
}

// The links: one to and one from each neighbour and channel, or one collComm for all.
//
// States: listening and connecting, until both lists of pending connections are empty -> connected,
// with all memory registered -> closed. Threads: the main thread calls; the service thread makes,
// registers and closes links, the progress thread runs jobs, and the main thread waits for both.
class Connections final : public Communicator {
 public:
  explicit Connections(const RunSetup& setup)
      : setup_(setup), options_(*setup.options), net_(*setup.net), coll_(setup.coll) {}
  ~Connections() override { (void)close(); }

  Result<void> open() {
    setup_.heartbeat->enter(coll_ == nullptr ? "connecting" : "connecting to the switch");
    auto done = service_.start("slime-service");
    if (done) done = progress_.start("slime-progress");
    if (done) done = service_.call([&] { return listen(); });
    if (done) done = exchange_handles();
    if (done) {
      done = service_.call([&] { return coll_ == nullptr ? connect_ring() : connect_coll(); });
    }
    if (!done) return done;
    // NCCL's bootstrap ends with a barrier too: nobody sends to a rank that has not accepted.
    if (auto all = setup_.member->exchange("connected", true); !all) return fail(all.error());
    return {};
  }

  Result<void> run(Job* job) override {
    const std::vector<Flow> flows =
        coll_ == nullptr ? make_plan(job->shape, setup_.sizes) : plan_coll(*job);
    std::vector<Lane> lanes;
    lanes.reserve(flows.size());
    for (const Flow& flow : flows) {
      lanes.push_back(
          {&flow, find(sends_, {flow.send_peer, flow.channel}),
           find(coll_ == nullptr ? receives_ : sends_, {flow.receive_peer, flow.channel})});
    }
    return progress_.call(
        [&] { return run_job(job, lanes, setup_.member->stop(), setup_.heartbeat); });
  }

  Result<void> close() override {
    return service_.call([this]() -> Result<void> {
      for (Links* links : {&sends_, &receives_}) {
        for (const auto& [key, link] : *links) close_link(*link, {key.peer, 0});
        links->clear();
      }
      for (const Pending& one : listening_) (void)close_listener(one.listener);
      listening_.clear();
      connecting_.clear();
      return first_error_;
    });
  }

 private:
  using Links = std::map<Key, std::unique_ptr<Link>>;

  // A call that both tables have.
  template <typename Call>
  Code on_table(Call call) const {
    return coll_ != nullptr ? call(*coll_) : call(net_);
  }
  static Link* find(const Links& links, const Key& key) {
    const auto found = links.find(key);
    return found != links.end() ? found->second.get() : nullptr;
  }
  int device_of(int channel) const {
    return setup_.devices[static_cast<size_t>(channel) % setup_.devices.size()];
  }
  // `call` of CollNet, or for a neighbour.
  tl::unexpected<Error> call_failed(std::string call, const Key& key, Code code) const {
    if (coll_ != nullptr) {
      if (call != "closeColl") call = "CollNet " + call;
    } else {
      call += " for rank " + std::to_string(key.peer) + ", channel " + std::to_string(key.channel) +
              ", device " + std::to_string(device_of(key.channel));
    }
    return fail(call_error(Status::kRemote, call, code));
  }

  // The channels to (sign 1) or from (-1) the ranks that this one talks to; of CollNet one for all.
  std::vector<Key> keys(int sign) const {
    if (coll_ != nullptr) return {{0, 0}};
    const int furthest = options_.collective == Collective::kAllToAll ? setup_.ranks - 1 : 1;
    std::vector<Key> keys;
    for (int distance = 1; distance <= furthest; ++distance) {
      const int peer = (setup_.rank + sign * distance + setup_.ranks) % setup_.ranks;
      for (int channel = 0; channel < setup_.channels; ++channel) keys.push_back({peer, channel});
    }
    return keys;
  }

  Result<void> listen() {
    for (const Key& key : keys(-1)) {
      Pending one{key};
      const int device = device_of(key.channel);
      const Code code = on_table([&](const auto& table) {
        return table.listen(device, one.handle.data(), &one.listener);
      });
      if (code != nccl::kSuccess) return call_failed("listen", key, code);
      if (one.listener == nullptr) {
        const std::string what = "listen on device " + std::to_string(device);
        return fail(make_error(Status::kInternal, 0, "%s succeeded without a comm",
                               coll_ != nullptr ? "CollNet listen" : what.c_str()));
      }
      listening_.push_back(one);
    }
    return {};
  }

  Result<void> exchange_handles() {
    nlohmann::json own = nlohmann::json::object();
    for (const Pending& one : listening_) own[name_of_handle(one.key)] = tools::to_hex(one.handle);
    const auto all = setup_.member->exchange("handles", std::move(own));
    if (!all) return fail(all.error());
    std::vector<Key> wanted = keys(1);
    if (coll_ != nullptr) {
      wanted.clear();
      for (int rank = 0; rank < setup_.ranks; ++rank) wanted.push_back({rank, 0});
    }
    for (const Key& key : wanted) {
      Pending& one = connecting_.emplace_back(Pending{key});
      const std::string name = name_of_handle({coll_ != nullptr ? 0 : setup_.rank, key.channel});
      const nlohmann::json& theirs = (*all)[static_cast<size_t>(key.peer)];
      if (!tools::from_hex(text_in(theirs, name.c_str()), one.handle)) {
        const std::string channel = "channel " + std::to_string(key.channel);
        return fail(make_error(Status::kRemote, 0, "rank %d sent no handle for %s", key.peer,
                               coll_ != nullptr ? "CollNet" : channel.c_str()));
      }
    }
    return {};
  }

  // Alternates between connecting and accepting: a call that blocked in one of them could wait for
  // a peer that waits in the other.
  Result<void> connect_ring() {
    const Clock& clock = SteadyClock::instance();
    const uint64_t deadline = clock.now_ns() + static_cast<uint64_t>(options_.timeout_s * 1e9);
    while (!connecting_.empty() || !listening_.empty()) {
      // Read before the tries: a process that was stopped tries each once more before it gives up.
      const bool late = clock.now_ns() > deadline;
      const auto connected = make_some(&connecting_);
      if (!connected) return fail(connected.error());
      const auto accepted = make_some(&listening_);
      if (!accepted) return fail(accepted.error());
      if (setup_.member->stop()) return fail(setup_.member->verdict());
      if (*connected || *accepted) {
        setup_.heartbeat->beat();
      } else if (late) {
        return fail(make_error(Status::kTimeout, 0, "not connected after %.0f s (--timeout):%s%s",
                               options_.timeout_s, names_of(connecting_, " to").c_str(),
                               names_of(listening_, " from").c_str()));
      } else {
        sched_yield();
      }
    }
    return {};
  }

  // Tries each pending connection once; true: some are made.
  Result<bool> make_some(PendingList* pending) {
    bool made = false;
    for (auto next = pending->begin(); next != pending->end();) {
      Pending& one = *next;
      const bool accepts = one.listener != nullptr;
      void* comm = nullptr;
      nccl::NetDeviceHandle* offload = nullptr;
      const Code code = accepts ? net_.accept(one.listener, &comm, &offload)
                                : net_.connect(device_of(one.key.channel), &kNoTrafficClass,
                                               one.handle.data(), &comm, &offload);
      if (code != nccl::kSuccess) return call_failed(accepts ? "accept" : "connect", one.key, code);
      if (comm == nullptr) {
        ++next;
        continue;
      }
      made = true;
      const Pending done = one;
      next = pending->erase(next);
      if (auto link = make_link(done, comm); !link) return fail(link.error());
    }
    return made;
  }

  Result<void> make_link(const Pending& made, void* comm) {
    const Key& key = made.key;
    const bool accepts = made.listener != nullptr;
    Endpoint end{accepts ? Endpoint::kReceive : Endpoint::kSend, &net_, nullptr, comm, key.peer};
    end.tag = accepts ? key.peer : setup_.rank;  // the sender's rank
    auto& link = (accepts ? receives_ : sends_)[key] = std::make_unique<Link>(end);
    if (accepts) {
      const Code closed = close_listener(made.listener);
      if (closed != nccl::kSuccess) return call_failed("closeListen", key, closed);
    }
    return register_fifos(link.get());
  }

  Result<void> connect_coll() {
    std::vector<void*> handles;
    for (Pending& one : connecting_) handles.push_back(one.handle.data());
    void* comm = nullptr;
    void* const listener = listening_.front().listener;
    listening_.clear();  // it is the plugin's where this fails
    const Code code = coll_->connect(handles.data(), setup_.ranks, setup_.rank, listener, &comm);
    if (code != nccl::kSuccess || comm == nullptr) return call_failed("connect", {}, code);
    auto& link = sends_[{0, 0}] =
        std::make_unique<Link>(Endpoint{Endpoint::kReduce, &net_, coll_, comm});
    const Code closed = close_listener(listener);
    if (closed != nccl::kSuccess) return call_failed("closeListen", {}, closed);
    if (auto done = check_support(*coll_, options_.types, options_.ops); !done) return done;
    return register_coll_fifos(link.get());
  }

  // `strict`: a handle must come.
  Result<void> register_memory(Link* link, const Buffer& buffer, void** handle,
                               const std::string& what, bool strict) {
    void* const comm = link->end().comm;
    const Code code = on_table([&](const auto& table) {
      // NCCL's shim for old tables refuses what an int cannot hold (net_v7.cc).
      if (table.version() <= 7 && buffer.size() >= size_t{1} << 31) return nccl::kInternalError;
      return table.reg_mr(comm, buffer.data(), buffer.size(), nccl::kPointerHost, handle);
    });
    if (*handle != nullptr) link->memory.handles.push_back(*handle);
    if (code == nccl::kSuccess && (*handle != nullptr || !strict)) return {};
    const std::string bytes = " of " + std::to_string(buffer.size()) + " bytes";
    return call_failed(coll_ != nullptr ? "regMr" + bytes : what, {link->end().peer, 0}, code);
  }

  // NCCL allocates and registers the FIFOs of all protocols whether or not they will be used;
  // point-to-point connections have no LL128.
  Result<void> register_fifos(Link* link) {
    LinkMemory& memory = link->memory;
    for (size_t p = 0; p < kProtocols; ++p) {
      const bool own_chunk = p == kSimple && is_point_to_point(options_.collective);
      const size_t bytes = own_chunk ? setup_.sizes.p2p_chunk * kSteps : setup_.sizes.fifo[p];
      Buffer& buffer = memory.buffers.emplace_back();
      auto done = buffer.allocate(bytes, "the FIFOs of a connection");
      Memory& fifo = memory.send_fifo[p];
      fifo.data = buffer.data();
      if (done) done = register_memory(link, buffer, &fifo.handle, "regMr", false);
      if (!done) return done;
      memory.receive_fifo[p] = fifo;
    }
    return register_users(link);
  }

  // The send FIFOs of all channels, then the receive FIFOs: one region, registered for each.
  Result<void> register_coll_fifos(Link* link) {
    const size_t half = static_cast<size_t>(setup_.channels) * setup_.sizes.fifo[kSimple];
    LinkMemory& memory = link->memory;
    Memory &send = memory.send_fifo[kSimple], &receive = memory.receive_fifo[kSimple];
    Buffer& buffer = memory.buffers.emplace_back();
    if (auto done = buffer.allocate(2 * half, "the FIFOs"); !done) return done;
    send.data = buffer.data();
    receive.data = buffer.data() + buffer.size() / 2;
    auto done = register_memory(link, buffer, &send.handle, "", true);
    if (done) done = register_memory(link, buffer, &receive.handle, "", true);
    return done ? register_users(link) : done;
  }

  Result<void> register_users(Link* link) {
    if (!options_.direct) return {};
    const char* const what = "regMr of the user's buffer (--direct)";
    void *&send = link->memory.send_buffer_handle, *&receive = link->memory.receive_buffer_handle;
    auto done = register_memory(link, setup_.send_buffer, &send, what, true);
    if (done) done = register_memory(link, setup_.receive_buffer, &receive, what, true);
    return done;
  }

  std::vector<Flow> plan_coll(const Job& job) const {
    Shape shape = job.shape;
    // NCCL divides averages in a kernel, so it does not give the user's memory to the network for
    // them (src/register/coll_reg.cc).
    shape.direct = shape.direct && shape.op != RedOp::kAvg;
    const Geometry geometry = coll_geometry(shape, setup_.max_call_bytes, setup_.sizes);
    if (!shape.direct) fill_fifos(job, geometry.slot_bytes * geometry.depth);
    return make_coll_plan(shape, geometry);
  }

  // Calls carry whole chunks, and behind the user's last element a chunk holds what earlier
  // operations have left in the FIFO. Timed operations find zeros there, as in NCCL's fresh host
  // memory; checked ones find the values that disturb a sum most.
  void fill_fifos(const Job& job, size_t bytes) const {
    const LinkMemory& memory = find(sends_, {0, 0})->memory;
    char* const send = memory.send_fifo[kSimple].data;
    std::memset(memory.receive_fifo[kSimple].data, 0x66, bytes);
    std::memset(send, 0, bytes);
    if (!job.is_checked) return;
    fill_garbage(job.shape.type, setup_.rank, options_.wild_tails, {send, bytes});
  }

  void close_link(const Link& link, const Key& key) {
    void* const comm = link.end().comm;
    const bool sends = link.end().kind == Endpoint::kSend;
    for (void* handle : link.memory.handles) {
      note(on_table([&](const auto& table) { return table.dereg_mr(comm, handle); }), "deregMr",
           key);
    }
    if (coll_ != nullptr) return note(coll_->close_coll(comm), "closeColl", key);
    note(sends ? net_.close_send(comm) : net_.close_recv(comm), sends ? "closeSend" : "closeRecv",
         key);
  }
  Code close_listener(void* listener) const {
    return on_table([&](const auto& table) { return table.close_listen(listener); });
  }
  void note(Code code, const char* call, const Key& key) {
    if (code != nccl::kSuccess && first_error_) first_error_ = call_failed(call, key, code);
  }

  const RunSetup& setup_;
  const Options& options_;
  const NetTable& net_;
  const CollTable* const coll_;
  PendingList connecting_, listening_;
  Links sends_, receives_;
  Result<void> first_error_;  // of closing
  Worker service_, progress_;
};

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const RunSetup& setup) {
  auto made = std::make_unique<Connections>(setup);
  if (auto done = made->open(); !done) return fail(done.error());
  return made;
}

}  // namespace slime::perf
