#include "message/recv_comm.h"

namespace slime {

RecvCommImpl::RecvCommImpl(Devices& devices, Device& device, LinkParts parts, bool host_memory)
    : LinkComm(devices, device, std::move(parts)), receiver_(*this, link_, eager_max_) {
  if (!host_memory) {
    const auto opened = receiver_.open_flushes(*this);
    if (!opened) (void)link_.context().fail(opened.error());
  }
  begin(receiver_);
}

Status RecvCommImpl::irecv(std::span<const Receive> receives, bool may_complete_early,
                           Request** request) {
  const Call call(*this);
  const Status status = receiver_.irecv(receives, may_complete_early, request);
  note(*request != nullptr, status);
  return status;
}

Status RecvCommImpl::test(Request* request, bool* done, size_t* sizes) {
  const Call call(*this);
  const Status status = receiver_.test(request, done, sizes);
  note(*done, status);
  return status;
}

bool RecvCommImpl::has_unexpected(int tag) {
  const Call call(*this);
  return receiver_.has_unexpected(tag);
}

Status RecvCommImpl::flush(const void* data, const MemoryRegion* region, Request** request) {
  const Call call(*this);
  const Status status = receiver_.flush(data, region, request);
  if (status == Status::kOk) achieved();
  return status;
}

}  // namespace slime
