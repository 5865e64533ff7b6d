// One rank's collComm and its FIFOs: set up and closed on the service thread, used on the progress
// thread, as NCCL does (src/transport/coll_net.cc).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/perf/coll_runner.h"
#include "tools/perf/communicator.h"
#include "tools/perf/handle.h"
#include "tools/perf/plugin.h"
#include "tools/perf/worker.h"

namespace slime::perf {

struct CollSetup {
  CollApi* api = nullptr;
  size_t max_call_bytes = kMaxCollBytes;
  std::vector<DataType> types;  // what is to be reduced
  std::vector<RedOp> ops;
};

class CollCommunicator final : public Communicator {
 public:
  // Collective over all ranks.
  static Result<std::unique_ptr<Communicator>> create(const CollSetup& coll,
                                                      const CommunicatorSetup& setup);
  ~CollCommunicator() override;  // closes whatever is still open, without waiting for peers

  Result<void> run(Job* job) override;
  Result<void> close() override;

 private:
  CollCommunicator(const CollSetup& coll, const CommunicatorSetup& setup)
      : coll_(coll), setup_(setup) {}
  Result<void> listen();
  Result<void> exchange_handles();
  Result<void> connect();
  Result<void> check_support() const;
  bool supports(DataType type, RedOp op) const;
  std::string supported() const;
  Result<void> register_memory();
  Result<void> add_region(const Buffer& buffer, void** handle);
  CollPath path_of(const Job& job) const;
  void soil_fifos(const Job& job, const CollPath& path) const;

  const CollSetup coll_;
  const CommunicatorSetup setup_;
  HandleBytes handle_{};
  std::vector<HandleBytes> handles_;
  void* listen_comm_ = nullptr;
  void* comm_ = nullptr;
  // The send FIFOs of all channels, then the receive FIFOs: one region, registered for each.
  Buffer fifos_;
  void *send_fifo_handle_ = nullptr, *receive_fifo_handle_ = nullptr;
  void *send_buffer_handle_ = nullptr, *receive_buffer_handle_ = nullptr;
  Workers workers_;
};

}  // namespace slime::perf
