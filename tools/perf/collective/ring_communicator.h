// One rank's connections to its neighbours in the ring, or to all: made, registered and closed on
// the service thread, used on the progress thread, as NCCL does (src/proxy.cc,
// src/transport/net.cc).
//
// States: listening and connecting until both lists of pending connections are empty; connected;
// closed, after close() or the destructor. Peers stay in sends_ and receives_ until then.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/perf/collective/communicator.h"
#include "tools/perf/collective/link.h"
#include "tools/perf/plugin/plugin.h"

namespace slime::perf {

class RingCommunicator final : public Communicator {
 public:
  // Collective over all ranks.
  static Result<std::unique_ptr<Communicator>> create(const NetTable* net,
                                                      const CommunicatorSetup& setup);
  ~RingCommunicator() override;  // closes whatever is still open, without waiting for peers

  Result<void> run(Job* job) override;
  Result<void> close() override;

 private:
  struct Key {
    int peer, channel;
    auto operator<=>(const Key&) const = default;
  };
  // A connection to come: to a peer (no listener), or from one.
  struct Pending {
    Key key;
    void* listener = nullptr;
    // Stays where it is: plugins may keep the state of an attempt in it.
    HandleBytes handle{};
  };
  template <typename L>
  using Links = std::map<Key, std::unique_ptr<L>>;

  RingCommunicator(const NetTable* net, const CommunicatorSetup& setup)
      : net_(net), setup_(setup) {}
  // At these distances behind us; those before us are the same.
  std::vector<int> distances() const;
  int peer_at(int distance) const { return (setup_.rank + distance + setup_.ranks) % setup_.ranks; }
  int device_of(int channel) const {
    return setup_.devices[static_cast<size_t>(channel) % setup_.devices.size()];
  }
  Result<void> listen();
  Result<void> exchange_handles();
  Result<void> connect_all();
  // Tries each pending connection once; true: some are made.
  template <typename L>
  Result<bool> make_some(std::vector<std::unique_ptr<Pending>>* pending, Links<L>* links);
  Result<void> register_memory(Link* link, const Key& key);
  Error call_failed(const char* call, const Key& key, Code code) const;
  std::string missing() const;
  void release(Link* link, const Key& key, bool is_send, Result<void>* first);

  const NetTable* const net_;
  const CommunicatorSetup setup_;
  std::vector<std::unique_ptr<Pending>> connecting_, listening_;
  Links<SendLink> sends_;
  Links<RecvLink> receives_;
  Workers workers_;
};

}  // namespace slime::perf
