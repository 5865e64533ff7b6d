// One rank's connections to its neighbours in the ring, or to all: made, registered and closed on
// the service thread, used on the progress thread, as NCCL does (src/proxy.cc,
// src/transport/net.cc).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tools/perf/communicator.h"
#include "tools/perf/handle.h"
#include "tools/perf/link.h"
#include "tools/perf/plugin.h"
#include "tools/perf/worker.h"

namespace slime::perf {

class RingCommunicator final : public Communicator {
 public:
  // Collective over all ranks.
  static Result<std::unique_ptr<Communicator>> create(NetApi* net, const CommunicatorSetup& setup);
  ~RingCommunicator() override;  // closes whatever is still open, without waiting for peers

  Result<void> run(Job* job) override;
  Result<void> close() override;

 private:
  struct Key {
    int peer, channel;
    auto operator<=>(const Key&) const = default;
  };
  struct Listening {
    Key key;
    void* comm = nullptr;
    HandleBytes handle{};
  };
  struct Connecting {
    Key key;
    // Stays where it is: plugins may keep the state of an attempt in it.
    HandleBytes handle{};
  };

  RingCommunicator(NetApi* net, const CommunicatorSetup& setup) : net_(net), setup_(setup) {}
  std::vector<int> send_peers() const;
  std::vector<int> receive_peers() const;
  int device_of(int channel) const;
  Result<void> listen();
  Result<void> exchange_handles();
  Result<void> connect_all();
  Result<bool> connect_some();
  Result<bool> accept_some();
  Result<void> register_fifos(Link* link);
  Result<void> register_users(Link* link);
  Error call_failed(const char* call, const Key& key, nccl::ResultCode code) const;
  std::string missing() const;
  void release(Link* link, bool send, Result<void>* first);

  NetApi* const net_;
  const CommunicatorSetup setup_;
  std::vector<Listening> listening_;
  std::vector<Connecting> connecting_;
  std::map<Key, std::unique_ptr<SendLink>> sends_;
  std::map<Key, std::unique_ptr<RecvLink>> receives_;
  Workers workers_;
};

}  // namespace slime::perf
