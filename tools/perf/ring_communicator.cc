#include "tools/perf/ring_communicator.h"

#include <sched.h>

#include "base/clock.h"
#include "tools/perf/runner.h"

namespace slime::perf {

Result<std::unique_ptr<Communicator>> RingCommunicator::create(NetApi* net,
                                                               const CommunicatorSetup& setup) {
  std::unique_ptr<RingCommunicator> made(new RingCommunicator(net, setup));
  RingCommunicator* communicator = made.get();
  setup.pulse->enter("connecting");
  auto done = communicator->workers_.start();
  if (!done) return fail(done.error());
  done = communicator->workers_.service.call([communicator] { return communicator->listen(); });
  if (done) done = communicator->exchange_handles();
  if (done)
    done =
        communicator->workers_.service.call([communicator] { return communicator->connect_all(); });
  if (!done) return fail(done.error());
  // NCCL's bootstrap ends with a barrier too: nobody sends to a rank that has not accepted.
  if (auto all = setup.member->exchange("connected", true); !all) return fail(all.error());
  return made;
}

RingCommunicator::~RingCommunicator() { (void)close(); }

std::vector<int> RingCommunicator::send_peers() const {
  if (setup_.collective != Collective::kAllToAll) return {(setup_.rank + 1) % setup_.ranks};
  std::vector<int> peers;
  for (int i = 1; i < setup_.ranks; ++i) peers.push_back((setup_.rank + i) % setup_.ranks);
  return peers;
}

std::vector<int> RingCommunicator::receive_peers() const {
  const int ranks = setup_.ranks;
  if (setup_.collective != Collective::kAllToAll) return {(setup_.rank + ranks - 1) % ranks};
  std::vector<int> peers;
  for (int i = 1; i < ranks; ++i) peers.push_back((setup_.rank + ranks - i) % ranks);
  return peers;
}

int RingCommunicator::device_of(int channel) const {
  return setup_.devices[static_cast<size_t>(channel) % setup_.devices.size()];
}

Error RingCommunicator::call_failed(const char* call, const Key& key, nccl::ResultCode code) const {
  char call_on[160];
  snprintf(call_on, sizeof call_on, "%s for rank %d, channel %d, device %d", call, key.peer,
           key.channel, device_of(key.channel));
  return call_error(Status::kRemote, call_on, code);
}

Result<void> RingCommunicator::listen() {
  for (const int peer : receive_peers()) {
    for (int channel = 0; channel < setup_.channels; ++channel) {
      Listening one{{peer, channel}, nullptr, {}};
      const auto code = net_->listen(device_of(channel), one.handle.data(), &one.comm);
      if (code != nccl::kSuccess) return fail(call_failed("listen", one.key, code));
      if (one.comm == nullptr) {
        return fail(make_error(Status::kInternal, 0, "listen on device %d succeeded without a comm",
                               device_of(channel)));
      }
      listening_.push_back(one);
    }
  }
  return {};
}

Result<void> RingCommunicator::exchange_handles() {
  nlohmann::json mine = nlohmann::json::object();  // "peer/channel" -> handle
  for (const Listening& one : listening_) {
    mine[std::to_string(one.key.peer) + "/" + std::to_string(one.key.channel)] = to_hex(one.handle);
  }
  auto all = setup_.member->exchange("handles", std::move(mine));
  if (!all) return fail(all.error());
  for (const int peer : send_peers()) {
    const nlohmann::json& theirs = (*all)[static_cast<size_t>(peer)];
    for (int channel = 0; channel < setup_.channels; ++channel) {
      Connecting one{{peer, channel}, {}};
      const std::string key = std::to_string(setup_.rank) + "/" + std::to_string(channel);
      if (!from_hex(text_in(theirs, key.c_str()), one.handle)) {
        return fail(
            make_error(Status::kRemote, 0, "rank %d sent no handle for channel %d", peer, channel));
      }
      connecting_.push_back(one);
    }
  }
  return {};
}

// Connects and accepts turn about: blocking in either could wait for a peer that waits for us.
Result<void> RingCommunicator::connect_all() {
  const Clock& clock = SteadyClock::instance();
  const uint64_t deadline = clock.now_ns() + static_cast<uint64_t>(setup_.timeout_s * 1e9);
  while (!connecting_.empty() || !listening_.empty()) {
    // Before the look: who was held up looks once more.
    const bool late = clock.now_ns() > deadline;
    const auto connected = connect_some();
    if (!connected) return fail(connected.error());
    const auto accepted = accept_some();
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

Result<bool> RingCommunicator::connect_some() {
  bool moved = false;
  for (size_t i = 0; i < connecting_.size();) {
    Connecting& one = connecting_[i];
    void* comm = nullptr;
    const auto code = net_->connect(device_of(one.key.channel), one.handle.data(), &comm);
    if (code != nccl::kSuccess) return fail(call_failed("connect", one.key, code));
    if (comm == nullptr) {
      ++i;
      continue;
    }
    auto link = std::make_unique<SendLink>(net_, comm, one.key.peer, setup_.rank);
    SendLink* raw = link.get();
    sends_[one.key] = std::move(link);
    connecting_.erase(connecting_.begin() + static_cast<ptrdiff_t>(i));
    moved = true;
    if (auto done = register_fifos(raw); !done) return fail(done.error());
    if (auto done = register_users(raw); !done) return fail(done.error());
  }
  return moved;
}

Result<bool> RingCommunicator::accept_some() {
  bool moved = false;
  for (size_t i = 0; i < listening_.size();) {
    const Listening one = listening_[i];
    void* comm = nullptr;
    const auto code = net_->accept(one.comm, &comm);
    if (code != nccl::kSuccess) return fail(call_failed("accept", one.key, code));
    if (comm == nullptr) {
      ++i;
      continue;
    }
    auto link = std::make_unique<RecvLink>(net_, comm, one.key.peer, one.key.peer);
    RecvLink* raw = link.get();
    receives_[one.key] = std::move(link);
    listening_.erase(listening_.begin() + static_cast<ptrdiff_t>(i));
    moved = true;
    const auto closed = net_->close_listen(one.comm);
    if (closed != nccl::kSuccess) return fail(call_failed("closeListen", one.key, closed));
    if (auto done = register_fifos(raw); !done) return fail(done.error());
    if (auto done = register_users(raw); !done) return fail(done.error());
  }
  return moved;
}

// NCCL allocates and registers the FIFOs of all protocols whether or not they will be used;
// point-to-point connections have no LL128.
Result<void> RingCommunicator::register_fifos(Link* link) {
  for (size_t p = 0; p < kProtocols; ++p) {
    const auto protocol = static_cast<Protocol>(p);
    size_t bytes = setup_.sizes.fifo[p];
    if (protocol == Protocol::kSimple && is_point_to_point(setup_.collective)) {
      bytes = setup_.sizes.p2p_chunk * kSteps;
    }
    auto buffer = Buffer::allocate(bytes, "the FIFOs of a connection");
    if (!buffer) return fail(buffer.error());
    link->memory().fifo[p] = std::move(*buffer);
    const auto code = net_->reg_mr(link->comm(), link->memory().fifo[p].data(), bytes,
                                   &link->memory().fifo_handle[p]);
    if (code != nccl::kSuccess) return fail(call_failed("regMr", {link->peer(), 0}, code));
  }
  return {};
}

Result<void> RingCommunicator::register_users(Link* link) {
  const auto add = [&](const Buffer* buffer, void** handle) -> Result<void> {
    if (buffer == nullptr) return {};
    const auto code = net_->reg_mr(link->comm(), buffer->data(), buffer->size(), handle);
    if (code == nccl::kSuccess && *handle != nullptr) return {};
    return fail(call_failed("regMr of the user's buffer (--direct)", {link->peer(), 0}, code));
  };
  if (auto done = add(setup_.send_buffer, &link->memory().send_buffer_handle); !done) return done;
  return add(setup_.receive_buffer, &link->memory().receive_buffer_handle);
}

std::string RingCommunicator::missing() const {
  std::string text;
  for (const Connecting& one : connecting_) {
    text += " to rank " + std::to_string(one.key.peer) + " (channel " +
            std::to_string(one.key.channel) + ")";
  }
  for (const Listening& one : listening_) {
    text += " from rank " + std::to_string(one.key.peer) + " (channel " +
            std::to_string(one.key.channel) + ")";
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
    Runner runner(job, lanes, &setup_.member->stop(), setup_.pulse);
    return runner.run();
  });
}

void RingCommunicator::release(Link* link, bool send, Result<void>* first) {
  const auto note = [&](const char* call, nccl::ResultCode code) {
    if (code != nccl::kSuccess && first->has_value()) {
      *first = fail(call_failed(call, {link->peer(), 0}, code));
    }
  };
  LinkMemory& memory = link->memory();
  std::vector<void*> handles(memory.fifo_handle.begin(), memory.fifo_handle.end());
  handles.push_back(memory.send_buffer_handle);
  handles.push_back(memory.receive_buffer_handle);
  for (void* handle : handles) {
    if (handle != nullptr) note("deregMr", net_->dereg_mr(link->comm(), handle));
  }
  note(send ? "closeSend" : "closeRecv",
       send ? net_->close_send(link->comm()) : net_->close_recv(link->comm()));
}

Result<void> RingCommunicator::close() {
  return workers_.service.call([this] {
    Result<void> first;
    for (const auto& [key, link] : sends_) release(link.get(), true, &first);
    for (const auto& [key, link] : receives_) release(link.get(), false, &first);
    for (const Listening& one : listening_) (void)net_->close_listen(one.comm);
    sends_.clear();
    receives_.clear();
    listening_.clear();
    connecting_.clear();
    return first;
  });
}

}  // namespace slime::perf
