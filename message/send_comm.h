// A comm that sends: a link of its own, and a Sender over it.
#pragma once

#include "message/link_comm.h"
#include "message/sender/sender.h"

namespace slime {

class SendCommImpl final : public LinkComm<SendComm> {
 public:
  SendCommImpl(Devices& devices, Device& device, LinkParts parts);
  ~SendCommImpl() override;

  Status isend(const void* data, size_t bytes, int tag, const MemoryRegion* region,
               Request** request) override;
  Status test(Request* request, bool* done, size_t* sizes) override;
  // See Sender. If false, call progress().
  bool settled() { return sender_.settled(); }

 private:
  bool has_requests() const override { return sender_.has_requests(); }
  Status move() override { return sender_.move(); }
  void drain_before_close();

  Sender sender_;
};

}  // namespace slime
