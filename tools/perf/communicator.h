// One rank's connections: made, registered and closed on the service thread, used on the progress
// thread, as NCCL does (src/proxy.cc, src/transport/net.cc).
#pragma once

#include <slime/result.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/perf/link.h"
#include "tools/perf/member.h"
#include "tools/perf/net_api.h"
#include "tools/perf/runner.h"
#include "tools/perf/tuning.h"
#include "tools/perf/worker.h"

namespace slime::perf {

struct CommunicatorSetup {
  NetApi* net = nullptr;
  Member* member = nullptr;
  Pulse* pulse = nullptr;
  int rank = 0, ranks = 2;
  int channels = 1;
  Collective collective = Collective::kAllReduce;
  std::vector<int> devices;  // channel c uses devices[c % size]
  BufferSizes sizes;
  double timeout_s = 120;
  // --direct: the user's buffers are registered with every connection.
  const Buffer* send_buffer = nullptr;
  const Buffer* receive_buffer = nullptr;
};

class Communicator {
 public:
  // Collective over all ranks.
  static Result<std::unique_ptr<Communicator>> create(const CommunicatorSetup& setup);
  ~Communicator();  // closes whatever is still open, without waiting for peers

  // Runs the job on the progress thread. `job->flows` is set; links are found here.
  Result<void> run(Job* job);

  // Deregisters and closes on the service thread. The first error, or nothing.
  Result<void> close();

 private:
  struct Key {
    int peer, channel;
    auto operator<=>(const Key&) const = default;
  };
  struct Listening {
    Key key;
    void* comm = nullptr;
    std::array<std::byte, nccl::kHandleMaxBytes> handle{};
  };
  struct Connecting {
    Key key;
    // Stays where it is: plugins may keep the state of an attempt in it.
    std::array<std::byte, nccl::kHandleMaxBytes> handle{};
  };

  explicit Communicator(const CommunicatorSetup& setup) : setup_(setup) {}
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

  const CommunicatorSetup setup_;
  std::vector<Listening> listening_;
  std::vector<Connecting> connecting_;
  std::map<Key, std::unique_ptr<SendLink>> sends_;
  std::map<Key, std::unique_ptr<RecvLink>> receives_;
  Worker service_{"slime-service"};
  Worker progress_{"slime-progress"};
};

}  // namespace slime::perf
