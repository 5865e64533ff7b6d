// What runs jobs: this rank's connections to the others, as a ring or through the network's own
// allreduce. Made, registered and closed on the service thread, used on the progress thread, as
// NCCL does (src/proxy.cc, src/transport/net.cc, src/transport/coll_net.cc).
#pragma once

#include <memory>
#include <vector>

#include "tools/perf/collective/link.h"
#include "tools/perf/options.h"

namespace slime::perf {

// What is settled before the ranks connect.
struct RunSetup {
  const Options* options = nullptr;
  Member* member = nullptr;
  Heartbeat* heartbeat = nullptr;
  const NetTable* net = nullptr;
  const CollTable* coll = nullptr;        // null: a ring
  size_t max_call_bytes = kMaxCollBytes;  // of the CollNet's device
  int rank = 0, ranks = 2, channels = 1;
  std::vector<int> devices;  // channel c uses devices[c % size]
  BufferSizes sizes;
  AllowedProtocols protocols{};
  // The user's; with --direct they are registered.
  Buffer send_buffer, receive_buffer;
};

// States: listening -> connected, all memory registered -> closed, after close() or the destructor.
// Thread rules: the main thread calls, one call at a time; plugins are called on the two workers.
class Communicator {
 public:
  // Collective over all ranks. `setup` outlives it.
  static Result<std::unique_ptr<Communicator>> create(const RunSetup& setup);
  virtual ~Communicator() = default;  // closes whatever is still open, without waiting for peers

  // Runs the job on the progress thread.
  virtual Result<void> run(Job* job) = 0;

  // Deregisters and closes on the service thread. The first error, or nothing.
  virtual Result<void> close() = 0;
};

}  // namespace slime::perf
