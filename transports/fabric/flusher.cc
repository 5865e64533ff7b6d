#include "transports/fabric/flusher.h"

#include <span>
#include <utility>

#include "base/log.h"
#include "transports/channel_common.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

constexpr uint64_t kRepeatPauseNs = 50'000'000;

}  // namespace

Result<std::unique_ptr<Flusher>> FabricFlusher::open(FabricRail& rail) {
  auto endpoint = Endpoint::open(rail.flush_domain(), kSizes);
  if (!endpoint) return fail(slime::prefixed(rail.caps(), std::move(endpoint.error())));
  const auto self = endpoint->add_peer(rail.flush_domain(), endpoint->name());
  if (!self) return fail(slime::prefixed(rail.caps(), self.error()));
  return std::unique_ptr<Flusher>(new FabricFlusher(rail, std::move(*endpoint), *self));
}

FabricFlusher::FabricFlusher(FabricRail& rail, Endpoint endpoint, fi_addr_t self)
    : ReadFlusher(rail.caps(), rail.regions()),
      rail_(rail),
      self_(self),
      endpoint_(std::move(endpoint)) {}

void FabricFlusher::post_if_due() {
  if (post_due_ns_ != 0 && steady_now_ns() < post_due_ns_) return;
  post_due_ns_ = 0;
  post_waiting();
}

bool FabricFlusher::post(uint64_t number, const FlushReads::Read& read) {
  const auto key = rail_.flush_key(read.keys.local);
  if (!key) {
    fail_with(prefixed(key.error()));
    return false;
  }
  const FabricRail::Scratch& scratch = rail_.flush_scratch();
  const iovec piece = {scratch.memory, 1};
  const uint64_t address =
      rail_.by_offset() ? read.offset : reinterpret_cast<uint64_t>(read.address);
  const fi_rma_iov source = {address, 1, *key};
  void* description = scratch.description;
  void* const context = &contexts_[number % contexts_.size()];
  const fi_msg_rma message = message_of(piece, &description, source, self_, context);
  const long code = ::fi_readmsg(endpoint_.get(), &message, FI_COMPLETION);
  if (code != 0 && code != -FI_EAGAIN) {
    fail_with(prefixed(fabric_error(rail_.domain().symbols(), code, "fi_readmsg failed")));
  }
  return code == 0;
}

void FabricFlusher::progress() {
  take_completions();
  if (!failed()) post_if_due();
}

// The number of the read that was posted with this context. A completion may have another context:
// any process that knows the endpoint's name can write to it.
std::optional<uint64_t> FabricFlusher::number_of(const void* context) const {
  for (uint64_t number = reads_.completed(); number != reads_.begun(); ++number) {
    if (&contexts_[number % contexts_.size()] == context) return number;
  }
  return std::nullopt;
}

void FabricFlusher::take_completions() {
  std::array<fi_cq_data_entry, FlushReads::kMost> entries;
  const ssize_t count = ::fi_cq_read(endpoint_.completions(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) return;
  if (count == -FI_EAVAIL) return take_failure();
  if (count < 0) {
    fail_with(prefixed(fabric_error(rail_.domain().symbols(), count, "fi_cq_read failed")));
    return;
  }
  for (const fi_cq_data_entry& entry : std::span(entries).first(static_cast<size_t>(count))) {
    const auto number = number_of(entry.op_context);
    if (!number || (entry.flags & FI_READ) == 0) continue;
    reads_.complete(*number);
    warned_ = false;
  }
}

// A port that is down may come back; how long that may take is the caller's to say.
void FabricFlusher::take_failure() {
  CompletionError error;
  if (::fi_cq_readerr(endpoint_.completions(), &error.known, 0) != 1) return;
  const auto number = number_of(error.known.op_context);
  if (!number || !reads_.wait_again(*number)) return;
  post_due_ns_ = steady_now_ns() + kRepeatPauseNs;
  if (!std::exchange(warned_, true)) warn_of(reads_.read(*number), error.known);
}

void FabricFlusher::warn_of(const FlushReads::Read& read, const fi_cq_err_entry& error) {
  SLIME_WARN(
      "rail %s: a flush repeats a read at %p, up to NCCL_SLIME_PEER_TIMEOUT: %s; see dmesg for "
      "errors of this NIC or of the GPU",
      rail_.caps().name.c_str(), static_cast<const void*>(read.address),
      endpoint_.describe(rail_.domain(), error).c_str());
}

}  // namespace slime::fabric
