#include "transports/fabric/flusher.h"

#include <slime/clock.h>
#include <slime/log.h>

#include <algorithm>
#include <span>
#include <utility>

#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

constexpr uint64_t kRepeatPauseNs = 50'000'000;

uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

}  // namespace

Result<std::unique_ptr<Flusher>> FabricFlusher::open(FabricRail& rail) {
  auto endpoint = Endpoint::open(rail.domain(), kSizes);
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
  next.state = Read::State::kWaiting;
  if (!is_registered(next)) {
    return fail_with(make_error(Status::kInvalid, 0,
                                "a read at %p, which is not registered with that key",
                                static_cast<const void*>(address)));
  }
  ++begun_;
  post_waiting();
  return failed_ ? failure_.status : Status::kOk;
}

void FabricFlusher::post_waiting() {
  if (post_due_ns_ != 0 && now_ns() < post_due_ns_) return;
  post_due_ns_ = 0;
  for (uint64_t number = completed_; number != begun_; ++number) {
    Read& next = read(number);
    if (next.state != Read::State::kWaiting) continue;
    const bool gone = !is_registered(next);
    const long code = gone ? 0 : post(next);
    if (code == -FI_EAGAIN) return;
    if (code != 0) {
      (void)fail_with(fabric_error(rail_.domain().symbols(), code, "fi_readmsg failed"));
      return;
    }
    next.state = gone ? Read::State::kDone : Read::State::kPosted;
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
  if (!failed_) post_waiting();
  while (completed_ != begun_ && read(completed_).state == Read::State::kDone) ++completed_;
  *completed = completed_;
  return failed_ ? failure_.status : Status::kOk;
}

// The read whose context this is; nullptr: none. Whoever knows the endpoint may write to it.
FabricFlusher::Read* FabricFlusher::find(const void* context) {
  const auto found = std::ranges::find_if(
      reads_, [context](const Read& read) { return &read.context == context; });
  return found != reads_.end() && found->state == Read::State::kPosted ? &*found : nullptr;
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
    Read* const done = (entry.flags & FI_READ) != 0 ? find(entry.op_context) : nullptr;
    if (done == nullptr) continue;
    done->state = Read::State::kDone;
    warned_ = false;
  }
}

void FabricFlusher::take_failure() {
  CompletionError error;
  if (::fi_cq_readerr(endpoint_.completions(), &error.known, 0) != 1) return;
  Read* const failed = find(error.known.op_context);
  if (failed == nullptr) return;
  failed->state = is_registered(*failed) ? Read::State::kWaiting : Read::State::kDone;
  if (failed->state == Read::State::kWaiting) repeat(*failed, error.known);
}

// A port that is down may come back; how long that may take is the caller's to say.
void FabricFlusher::repeat(Read& read, const fi_cq_err_entry& error) {
  post_due_ns_ = now_ns() + kRepeatPauseNs;
  if (std::exchange(warned_, true)) return;
  char text[128] = "";
  const char* const detail = ::fi_cq_strerror(endpoint_.completions(), error.prov_errno,
                                              error.err_data, text, sizeof text);
  SLIME_WARN(
      "rail %s: iflush repeats a read at %p, up to NCCL_SLIME_PEER_TIMEOUT: %s (%d; provider %s: "
      "%s, %d); see dmesg for errors of this NIC or of the GPU",
      rail_.caps().name.c_str(), static_cast<const void*>(read.address),
      rail_.domain().symbols().strerror(error.err), error.err, rail_.domain().provider().c_str(),
      detail != nullptr ? detail : text, error.prov_errno);
}

Status FabricFlusher::fail_with(Error error) {
  failed_ = true;
  error.what = "rail " + rail_.caps().name + ", for iflush: " + error.what;
  failure_ = std::move(error);
  return failure_.status;
}

}  // namespace slime::fabric
