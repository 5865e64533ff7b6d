#include "collnet/comm/ring.h"

#include <algorithm>
#include <utility>

namespace slime {

Result<std::unique_ptr<Ring>> Ring::connect(Devices& devices, int device, Listener& listener,
                                            std::span<const Handle> handles, uint32_t rank,
                                            const Deadline& deadline, const CommOptions& options) {
  const auto size = static_cast<uint32_t>(handles.size());
  std::unique_ptr<Ring> ring(new Ring(devices, *devices.device(device), rank, size));
  if (size == 1) return ring;
  auto connector = Connector::open(devices, device, handles[(rank + 1) % size], options);
  if (!connector) return fail(std::move(connector.error()));
  Result<void> opened;
  const bool in_time = step_until(devices.clock(), deadline, [&](uint64_t) {
    opened = ring->open_step(listener, **connector);
    return !opened || (ring->next_ && ring->previous_);
  });
  if (!in_time) return fail(ring->late("the ring of members was not connected"));
  if (!opened) return fail(std::move(opened.error()));
  return ring;
}

Ring::~Ring() {
  next_.reset();
  previous_.reset();
  if (region_) device_.memory().release(region_);
}

Error Ring::late(const char* what) const {
  return make_error(Status::kTimeout, 0,
                    "CollNet: rank %u of %u: %s in time (NCCL_SLIME_CONNECT_TIMEOUT); did a rank "
                    "fail before? Look at the logs of the ranks beside this one",
                    rank_, size_, what);
}

Result<void> Ring::open_step(Listener& listener, Connector& connector) {
  if (!next_) {
    auto step = connector.step();
    if (!step) return fail(std::move(step.error()));
    next_ = std::move(*step);
  }
  if (previous_) return {};
  auto accepted = listener.accept();
  if (!accepted) return fail(std::move(accepted.error()));
  previous_ = std::move(*accepted);
  return {};
}

Result<void> Ring::all_gather(std::span<std::byte> all, size_t bytes, const Deadline& deadline,
                              const Meanwhile& meanwhile) {
  auto begun = begin_gather(all, bytes, Topic::kSetUp);
  if (!begun) return begun;
  Error error;
  Status status = Status::kAgain;
  const bool in_time = step_until(devices_.clock(), deadline, [&](uint64_t now_ns) {
    if (meanwhile) meanwhile(now_ns);
    return (status = step(&error)) != Status::kAgain;
  });
  if (!in_time) return fail(late("the members did not agree"));
  return status == Status::kOk ? Result<void>{} : fail(std::move(error));
}

// The buffer is registered once, for the largest blob so far.
Result<void> Ring::begin_gather(std::span<std::byte> all, size_t bytes, Topic topic) {
  if (sending_ || receiving_) return fail(Status::kInternal, "CollNet: the ring is in use");
  all_ = all;
  bytes_ = bytes;
  topic_ = topic;
  step_ = 0;
  if (2 * bytes <= buffer_.size() || size_ == 1) return {};
  if (region_) device_.memory().release(region_);
  region_ = nullptr;
  buffer_.resize(2 * bytes);
  auto region = device_.memory().acquire({buffer_.data(), buffer_.size()});
  if (!region) return fail(std::move(region.error()));
  region_ = *region;
  return {};
}

// The blob of the member `back` places before this one.
std::span<std::byte> Ring::blob(uint32_t back) const {
  const uint32_t rank = (rank_ + size_ - back) % size_;
  return all_.subspan(rank * bytes_, bytes_);
}

Status Ring::step(Error* error) {
  while (step_ + 1 < size_) {
    const Status status = exchange(error);
    if (status != Status::kOk) return status;
    const std::span<std::byte> in = blob(step_ + 1);
    std::copy_n(&buffer_[bytes_], bytes_, in.begin());
    sending_ = receiving_ = nullptr;
    sent_ = received_ = false;
    ++step_;
  }
  return Status::kOk;
}

// A message that has come without a receive for it, by the eager path of the engine.
bool Ring::invited(Topic topic) const {
  return previous_ && previous_->has_unexpected(static_cast<int>(topic));
}

Result<void> Ring::check() {
  for (Comm* const comm : {static_cast<Comm*>(next_.get()), static_cast<Comm*>(previous_.get())}) {
    if (!comm) continue;  // the only member
    const Status status = comm->progress();
    if (status != Status::kOk && status != Status::kAgain) return fail(comm->failure());
  }
  return {};
}

// Sends one blob and receives one. kAgain: not both are done.
Status Ring::exchange(Error* error) {
  const int tag = static_cast<int>(topic_);
  const Receive receive{
      .data = &buffer_[bytes_], .capacity = bytes_, .tag = tag, .region = region_};
  const auto failed = [&](Status status, const Comm& comm) {
    if (status == Status::kOk || status == Status::kAgain) return false;
    *error = comm.failure();
    return true;
  };
  Status status = Status::kOk;
  if (!receiving_) status = previous_->irecv(std::span(&receive, 1), false, &receiving_);
  if (status == Status::kOk && receiving_ && !received_) {
    status = previous_->test(receiving_, &received_, nullptr);
  }
  if (failed(status, *previous_)) return status;
  status = Status::kOk;
  if (!sending_) {
    const std::span<const std::byte> out = blob(step_);
    std::copy(out.begin(), out.end(), buffer_.begin());
    status = next_->isend(buffer_.data(), bytes_, tag, region_, &sending_);
  }
  if (status == Status::kOk && sending_ && !sent_) status = next_->test(sending_, &sent_, nullptr);
  if (failed(status, *next_)) return status;
  return sent_ && received_ ? Status::kOk : Status::kAgain;
}

}  // namespace slime
