// A comm that receives: a link of its own, and a Receiver over it.
#pragma once

#include "message/link_comm.h"
#include "message/receiver/receiver.h"

namespace slime {

class RecvCommImpl final : public LinkComm<RecvComm> {
 public:
  // `host_memory`: see CommOptions.
  RecvCommImpl(Devices& devices, Device& device, LinkParts parts, bool host_memory = false);
  ~RecvCommImpl() override { leave(); }

  Status irecv(std::span<const Receive> receives, bool may_complete_early,
               Request** request) override;
  Status test(Request* request, bool* done, size_t* sizes) override;
  bool has_unexpected(int tag) override;
  Status flush(const void* data, const MemoryRegion* region, Request** request) override;

 private:
  bool has_requests() const override { return receiver_.has_requests(); }
  Status move() override { return receiver_.move(); }

  Receiver receiver_;
};

}  // namespace slime
