#include "transports/fabric/flusher.h"

#include <span>
#include <utility>

#include "transports/fabric/rail.h"

namespace slime::fabric {

Result<std::unique_ptr<Flusher>> FabricFlusher::open(FabricRail& rail) {
  auto endpoint = Endpoint::open(rail.domain(), kMostReads);
  if (!endpoint) return fail(rail.placed(std::move(endpoint.error())));
  const auto self = endpoint->add_peer(rail.domain(), endpoint->name());
  if (!self) return fail(rail.placed(self.error()));
  return std::unique_ptr<Flusher>(new FabricFlusher(rail, std::move(*endpoint), *self));
}

bool FabricFlusher::is_registered(const Read& read) const {
  const RegionTable::Pin pin(rail_.regions(), read.keys.local,
                             reinterpret_cast<uint64_t>(read.address), 1);
  return pin.access() == RegionTable::Access::kGranted;
}

Status FabricFlusher::begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) {
  if (failed_) return failure_.status;
  if (begun_ - completed_ == kMostReads) return Status::kAgain;
  Read& next = read(begun_);
  next.address = address;
  next.offset = offset;
  next.keys = keys;
  next.done = false;
  if (!is_registered(next)) {
    return fail_with(make_error(Status::kInvalid, 0,
                                "a read at %p, which is not registered with that key",
                                static_cast<const void*>(address)));
  }
  ++begun_;
  post_begun();
  return failed_ ? failure_.status : Status::kOk;
}

// What has been deregistered since it began is complete: nobody looks there.
void FabricFlusher::post_begun() {
  while (posted_ != begun_) {
    Read& next = read(posted_);
    next.done = !is_registered(next);
    const long code = next.done ? 0 : post(next);
    if (code == -FI_EAGAIN) return;
    if (code != 0) {
      (void)fail_with(fabric_error(rail_.domain().symbols(), code, "fi_readmsg failed"));
      return;
    }
    ++posted_;
  }
}

long FabricFlusher::post(Read& read) {
  const FabricRail::Landing& landing = rail_.landing();
  const iovec piece = {landing.memory + FabricRail::kReadsLandAt, 1};
  const uint64_t address =
      rail_.by_offset() ? read.offset : reinterpret_cast<uint64_t>(read.address);
  const fi_rma_iov source = {address, 1, read.keys.remote};
  void* description = landing.description;
  fi_msg_rma message = {};
  message.msg_iov = &piece;
  message.desc = &description;
  message.iov_count = 1;
  message.addr = self_;
  message.rma_iov = &source;
  message.rma_iov_count = 1;
  message.context = &read.context;
  return ::fi_readmsg(endpoint_.get(), &message, FI_COMPLETION);
}

Status FabricFlusher::poll(uint64_t* completed) {
  if (!failed_) take_completions();
  if (!failed_) post_begun();
  while (completed_ != posted_ && read(completed_).done) ++completed_;
  *completed = completed_;
  return failed_ ? failure_.status : Status::kOk;
}

void FabricFlusher::take_completions() {
  std::array<fi_cq_data_entry, kMostReads> entries;
  const ssize_t count = ::fi_cq_read(endpoint_.completions(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) return;
  if (count == -FI_EAVAIL) return take_failure();
  if (count < 0) {
    (void)fail_with(fabric_error(rail_.domain().symbols(), count, "fi_cq_read failed"));
    return;
  }
  for (const fi_cq_data_entry& entry : std::span(entries).first(static_cast<size_t>(count))) {
    // The context is the first member of its read.
    static_cast<Read*>(entry.op_context)->done = true;
  }
}

void FabricFlusher::take_failure() {
  CompletionError error;
  if (::fi_cq_readerr(endpoint_.completions(), &error.known, 0) != 1) return;
  Read& failed = *static_cast<Read*>(error.known.op_context);
  failed.done = !is_registered(failed);  // see post_begun()
  if (failed.done) return;
  char text[128] = "";
  const char* const detail = ::fi_cq_strerror(endpoint_.completions(), error.known.prov_errno,
                                              error.known.err_data, text, sizeof text);
  (void)fail_with(make_error(
      Status::kSystem, error.known.err,
      "a read of the rail's own memory failed: %s (%d; provider %s: %s, %d); see dmesg for errors "
      "of this NIC or of the GPU",
      rail_.domain().symbols().strerror(error.known.err), error.known.err,
      rail_.domain().provider().c_str(), detail != nullptr ? detail : text,
      error.known.prov_errno));
}

Status FabricFlusher::fail_with(Error error) {
  failed_ = true;
  error.what = "rail " + rail_.caps().name + ", for iflush: " + error.what;
  failure_ = std::move(error);
  return failure_.status;
}

}  // namespace slime::fabric
