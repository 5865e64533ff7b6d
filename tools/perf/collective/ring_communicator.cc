#include "tools/perf/collective/ring_communicator.h"

#include <sched.h>

#include "base/clock.h"
#include "tools/common/bytes.h"
#include "tools/perf/collective/runner.h"

namespace slime::perf {

Result<std::unique_ptr<Communicator>> RingCommunicator::create(const NetTable* net,
                                                               const CommunicatorSetup& setup) {
  std::unique_ptr<RingCommunicator> made(new RingCommunicator(net, setup));
  RingCommunicator* self = made.get();
  setup.pulse->enter("connecting");
  auto done = self->workers_.start();
  if (done) done = self->workers_.service.call([self] { return self->listen(); });
  if (done) done = self->exchange_handles();
  if (done) done = self->workers_.service.call([self] { return self->connect_all(); });
  if (!done) return fail(done.error());
  // NCCL's bootstrap ends with a barrier too: nobody sends to a rank that has not accepted.
  if (auto all = setup.member->exchange("connected", true); !all) return fail(all.error());
  return made;
}

RingCommunicator::~RingCommunicator() { (void)close(); }

std::vector<int> RingCommunicator::distances() const {
  std::vector<int> distances = {1};
  if (setup_.collective != Collective::kAllToAll) return distances;
  for (int i = 2; i < setup_.ranks; ++i) distances.push_back(i);
  return distances;
}

Error RingCommunicator::call_failed(const char* call, const Key& key, Code code) const {
  char call_on[160];
  snprintf(call_on, sizeof call_on, "%s for rank %d, channel %d, device %d", call, key.peer,
           key.channel, device_of(key.channel));
  return call_error(Status::kRemote, call_on, code);
}

Result<void> RingCommunicator::listen() {
  for (const int distance : distances()) {
    for (int channel = 0; channel < setup_.channels; ++channel) {
      auto one = std::make_unique<Pending>(Pending{{peer_at(-distance), channel}});
      const auto code = net_->listen(device_of(channel), one->handle.data(), &one->listener);
      if (code != nccl::kSuccess) return fail(call_failed("listen", one->key, code));
      if (one->listener == nullptr) {
        return fail(make_error(Status::kInternal, 0, "listen on device %d succeeded without a comm",
                               device_of(channel)));
      }
      listening_.push_back(std::move(one));
    }
  }
  return {};
}

Result<void> RingCommunicator::exchange_handles() {
  const auto name_of = [](int peer, int channel) {
    return std::to_string(peer) + "/" + std::to_string(channel);
  };
  nlohmann::json mine = nlohmann::json::object();  // "peer/channel" -> handle
  for (const auto& one : listening_) {
    mine[name_of(one->key.peer, one->key.channel)] = tools::to_hex(one->handle);
  }
  auto all = setup_.member->exchange("handles", std::move(mine));
  if (!all) return fail(all.error());
  for (const int distance : distances()) {
    const int peer = peer_at(distance);
    for (int channel = 0; channel < setup_.channels; ++channel) {
      auto one = std::make_unique<Pending>(Pending{{peer, channel}});
      const std::string handle =
          text_in((*all)[static_cast<size_t>(peer)], name_of(setup_.rank, channel).c_str());
      if (!tools::from_hex(handle, one->handle)) {
        return fail(
            make_error(Status::kRemote, 0, "rank %d sent no handle for channel %d", peer, channel));
      }
      connecting_.push_back(std::move(one));
    }
  }
  return {};
}

// Alternates between connecting and accepting: a call that blocked in one of them could wait for a
// peer that waits in the other.
Result<void> RingCommunicator::connect_all() {
  const Clock& clock = SteadyClock::instance();
  const uint64_t deadline = clock.now_ns() + static_cast<uint64_t>(setup_.timeout_s * 1e9);
  while (!connecting_.empty() || !listening_.empty()) {
    // After a pause, all are tried once more before a time-out.
    const bool late = clock.now_ns() > deadline;
    const auto connected = make_some(&connecting_, &sends_);
    if (!connected) return fail(connected.error());
    const auto accepted = make_some(&listening_, &receives_);
    if (!accepted) return fail(accepted.error());
    if (setup_.member->stop()) return fail(setup_.member->verdict());
    if (*connected || *accepted) {
      setup_.pulse->beat();
    } else if (late) {
      return fail(make_error(Status::kTimeout, 0, "not connected after %.0f s (--timeout):%s",
                             setup_.timeout_s, missing().c_str()));
    } else {
      sched_yield();
    }
  }
  return {};
}

template <typename L>
Result<bool> RingCommunicator::make_some(std::vector<std::unique_ptr<Pending>>* pending,
                                         Links<L>* links) {
  bool made = false;
  for (size_t i = 0; i < pending->size();) {
    Pending& one = *(*pending)[i];
    const Key key = one.key;
    const bool accepts = one.listener != nullptr;
    void* comm = nullptr;
    const auto code = accepts ? net_->accept(one.listener, &comm)
                              : net_->connect(device_of(key.channel), one.handle.data(), &comm);
    if (code != nccl::kSuccess) return fail(call_failed(accepts ? "accept" : "connect", key, code));
    if (comm == nullptr) {
      ++i;
      continue;
    }
    made = true;
    // The tag is the sender's rank.
    auto& link = (*links)[key] =
        std::make_unique<L>(net_, comm, key.peer, accepts ? key.peer : setup_.rank);
    void* const listener = one.listener;
    pending->erase(pending->begin() + static_cast<ptrdiff_t>(i));
    if (accepts) {
      const auto closed = net_->close_listen(listener);
      if (closed != nccl::kSuccess) return fail(call_failed("closeListen", key, closed));
    }
    if (auto done = register_memory(link.get(), key); !done) return fail(done.error());
  }
  return made;
}

// NCCL allocates and registers the FIFOs of all protocols whether or not they will be used;
// point-to-point connections have no LL128. With --direct, the user's buffers are registered too.
Result<void> RingCommunicator::register_memory(Link* link, const Key& key) {
  LinkMemory& memory = link->memory();
  for (size_t p = 0; p < kProtocols; ++p) {
    const bool own_chunk =
        static_cast<Protocol>(p) == Protocol::kSimple && is_point_to_point(setup_.collective);
    const size_t bytes = own_chunk ? setup_.sizes.p2p_chunk * kSteps : setup_.sizes.fifo[p];
    auto buffer = Buffer::allocate(bytes, "the FIFOs of a connection");
    if (!buffer) return fail(buffer.error());
    memory.fifo[p] = std::move(*buffer);
    const auto code =
        net_->reg_mr(link->comm(), memory.fifo[p].data(), bytes, &memory.fifo_handle[p]);
    if (code != nccl::kSuccess) return fail(call_failed("regMr", {key.peer, 0}, code));
  }
  const auto add = [&](const Buffer* buffer, void** handle) -> Result<void> {
    if (buffer == nullptr) return {};
    const auto code = net_->reg_mr(link->comm(), buffer->data(), buffer->size(), handle);
    if (code == nccl::kSuccess && *handle != nullptr) return {};
    return fail(call_failed("regMr of the user's buffer (--direct)", {key.peer, 0}, code));
  };
  if (auto done = add(setup_.send_buffer, &memory.send_buffer_handle); !done) return done;
  return add(setup_.receive_buffer, &memory.receive_buffer_handle);
}

std::string RingCommunicator::missing() const {
  std::string text;
  for (const auto* list : {&connecting_, &listening_}) {
    for (const auto& one : *list) {
      text += std::string(list == &connecting_ ? " to" : " from") + " rank " +
              std::to_string(one->key.peer) + " (channel " + std::to_string(one->key.channel) + ")";
    }
  }
  return text;
}

Result<void> RingCommunicator::run(Job* job) {
  const std::vector<Flow> flows = make_plan(job->shape, setup_.sizes);
  std::vector<Lane> lanes;
  for (const Flow& flow : flows) {
    const auto send = sends_.find({flow.send_peer, flow.channel});
    const auto receive = receives_.find({flow.receive_peer, flow.channel});
    lanes.push_back({&flow, send != sends_.end() ? send->second.get() : nullptr,
                     receive != receives_.end() ? receive->second.get() : nullptr});
  }
  return workers_.progress.call([this, job, &lanes] {
    return Runner(job, lanes, &setup_.member->stop(), setup_.pulse).run();
  });
}

void RingCommunicator::release(Link* link, const Key& key, bool is_send, Result<void>* first) {
  const auto note = [&](const char* call, Code code) {
    if (code == nccl::kSuccess || !first->has_value()) return;
    *first = fail(call_failed(call, {key.peer, 0}, code));
  };
  const LinkMemory& memory = link->memory();
  std::vector<void*> handles(memory.fifo_handle.begin(), memory.fifo_handle.end());
  handles.push_back(memory.send_buffer_handle);
  handles.push_back(memory.receive_buffer_handle);
  for (void* handle : handles) {
    if (handle != nullptr) note("deregMr", net_->dereg_mr(link->comm(), handle));
  }
  note(is_send ? "closeSend" : "closeRecv",
       is_send ? net_->close_send(link->comm()) : net_->close_recv(link->comm()));
}

Result<void> RingCommunicator::close() {
  return workers_.service.call([this] {
    Result<void> first;
    for (const auto& [key, link] : sends_) release(link.get(), key, true, &first);
    for (const auto& [key, link] : receives_) release(link.get(), key, false, &first);
    for (const auto& one : listening_) (void)net_->close_listen(one->listener);
    sends_.clear();
    receives_.clear();
    listening_.clear();
    connecting_.clear();
    return first;
  });
}

}  // namespace slime::perf
