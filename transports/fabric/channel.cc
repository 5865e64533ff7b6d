// The data path of a libfabric channel.
#include "transports/fabric/channel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "settings/times.h"
#include "transports/channel_common.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

constexpr uint64_t kMessagesPauseNs = 1'000'000;

}  // namespace

Status FabricChannel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  if (state_ != State::kReady) {
    if (state_ < State::kReady) {
      fail_with(posted_early(rail_.caps()));
      state_ = State::kFailed;
    }
    return failure_.status;
  }
  works = works.first(std::min({works.size(), window_.room() - waiting_.size(),
                                static_cast<size_t>(rail_.caps().max_batch)}));
  if (works.empty()) return Status::kOk;
  for (const Work& work : works) {
    if (valid(work)) continue;
    fail_with(work_error(work));
    return failure_.status;
  }
  *taken = hand_over(works);
  if (state_ != State::kReady) return failure_.status;
  counters.doorbells.add();
  counters.works.add(works.size());
  for (const Work& work : works) counters.bytes_sent.add(work.length);
  return Status::kOk;
}

// Software providers compare the end of a write with that of the region, and let a wrap pass
// (libfabric's ofi_mr_map_verify); NICs do not.
bool FabricChannel::valid(const Work& work) {
  if (work.length == 0) return true;
  if (work.remote_address + work.length < work.length) return false;
  if (rail_.by_offset() && work.remote_offset + work.length < work.length) return false;
  const RegionTable::Pin pin(rail_.regions(), work.local_key,
                             reinterpret_cast<uint64_t>(work.local), work.length);
  return pin.access() == RegionTable::Access::kGranted &&
         work.length <= rail_.caps().max_message_bytes && rail_.is_key(work.remote_key);
}

// Where the provider takes no more for now, what is left waits for the next poll. Returns how many
// are the provider's, or wait.
size_t FabricChannel::hand_over(std::span<const Work> works) {
  size_t posted = 0;
  const bool may_hold_back = rail_.domain().traits().more;
  const auto lock = rail_.while_copying();
  for (; waiting_.empty() && posted < works.size(); ++posted) {
    const bool more =
        may_hold_back && posted + 1 < works.size() && (posted + 1) % kMostHeldBack != 0;
    const long code = write(works[posted], more);
    if (code == -FI_EAGAIN) break;
    if (code == 0) continue;
    fail_with(post_error(code, works[posted]));
    window_.withhold_newest(posted);
    return posted;
  }
  waiting_.insert(waiting_.end(), works.begin() + static_cast<ptrdiff_t>(posted), works.end());
  return works.size();
}

// The doorbell of works that were held back before is owed: none of these is held back.
void FabricChannel::hand_over_waiting() {
  if (waiting_.empty()) return;
  const auto lock = rail_.while_copying();
  while (!waiting_.empty() && state_ == State::kReady) {
    const long code = write(waiting_.front(), false);
    if (code == -FI_EAGAIN) return;
    if (code != 0) {
      fail_with(post_error(code, waiting_.front()));
      return;
    }
    waiting_.pop_front();
  }
}

// Works without bytes name a place all the same: some providers follow it (fi_rma(3)).
long FabricChannel::write(const Work& work, bool more) {
  const FabricRail::Scratch& scratch = rail_.scratch();
  iovec piece = {scratch.memory, 0};
  fi_rma_iov target = {peer_.scratch_address, 0, peer_.scratch_key};
  void* description = scratch.description;
  if (work.length > 0) {
    const RegionTable::Pin pin(rail_.regions(), work.local_key,
                               reinterpret_cast<uint64_t>(work.local), work.length);
    if (pin.access() != RegionTable::Access::kGranted) return -FI_EINVAL;  // since it was taken
    piece = {const_cast<std::byte*>(work.local), work.length};
    target = {rail_.by_offset() ? work.remote_offset : work.remote_address, work.length,
              work.remote_key};
    description = reinterpret_cast<void*>(pin.handle());
  }
  const long code = write(piece, description, target, window_.add(work), work.immediate,
                          FI_REMOTE_CQ_DATA | (more ? FI_MORE : 0));
  if (code != 0) window_.forget_newest();
  return code;
}

long FabricChannel::write(iovec piece, void* description, const fi_rma_iov& target, void* context,
                          uint64_t data, uint64_t flags) {
  fi_msg_rma message = message_of(piece, &description, target, peer_address_, context);
  message.data = data;
  const bool delivery = rail_.domain().traits().delivery_complete;
  flags |= FI_COMPLETION | (delivery ? FI_DELIVERY_COMPLETE : FI_TRANSMIT_COMPLETE);
  return ::fi_writemsg(endpoint_.get(), &message, flags);
}

Status FabricChannel::poll(std::span<Done> done, size_t* count) {
  *count = 0;
  counters.polls.add();
  if (state_ < State::kReady) return Status::kOk;
  if (state_ == State::kFailed) return failure_.status;
  if (state_ == State::kFenced) return Status::kOk;
  // What is done already has at most half of the room, so that neither kind starves the other.
  *count = window_.take(done.first((done.size() + 1) / 2));
  const bool over =
      state_ == State::kBroken && steady_now_ns() >= broken_ns_ + times::kFailedChannelDrain;
  const size_t room = kept_.empty() && !over ? done.size() - *count : 0;
  const size_t found = room > 0 ? read(room) : 0;
  hand_over_waiting();
  empty_reads_ += room > 0 && found == 0 ? 1 : 0;
  watch(found > 0);
  report_arrivals(done, count);
  *count += window_.take(done.subspan(*count));
  if (*count > 0) return Status::kOk;
  counters.empty_polls.add();
  const bool drained = (room > 0 || over) && found == 0 && kept_.empty();
  if (state_ == State::kBroken && drained && steady_now_ns() >= broken_ns_) state_ = State::kFailed;
  return state_ == State::kFailed ? failure_.status : Status::kOk;
}

// Arrivals go to kept_. Returns how many completions there were.
size_t FabricChannel::read(size_t room) {
  std::array<fi_cq_data_entry, kReadAtOnce> entries;
  ssize_t count = 0;
  {
    const auto lock = rail_.while_copying();
    count = ::fi_cq_read(endpoint_.completions(), entries.data(), std::min(room, entries.size()));
  }
  if (count == -FI_EAGAIN) return 0;
  if (count < 0) return take_error(count);
  last_completed_ns_ = steady_now_ns();
  for (ssize_t i = 0; i < count; ++i) take(entries[static_cast<size_t>(i)]);
  return static_cast<size_t>(count);
}

void FabricChannel::take(const fi_cq_data_entry& entry) {
  if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
    kept_.push_back(slime::arrived(static_cast<uint32_t>(entry.data), entry.len));
    ++arrivals_;
    return;
  }
  if (entry.op_context == &warm_up_) {
    warm_up_complete_ = true;
  } else if ((entry.flags & FI_WRITE) != 0 && !window_.complete(entry.op_context)) {
    fail_with(prefixed(where(),
                       make_error(Status::kInternal, 0,
                                  "the provider completed a write that is not under way; see its "
                                  "release notes")));
  }
}

size_t FabricChannel::take_error(long code) {
  CompletionError error;
  if (code == -FI_EAVAIL && ::fi_cq_readerr(endpoint_.completions(), &error.known, 0) == 1) {
    fail_with(prefixed(where(), entry_error(error.known)));
    return 1;
  }
  if (code != -FI_EAVAIL) {
    fail_with(prefixed(where(), fabric_error(rail_.domain().symbols(), code, "fi_cq_read failed")));
  }
  return 0;
}

void FabricChannel::report_arrivals(std::span<Done> done, size_t* count) {
  size_t taken = 0;
  for (; taken < kept_.size() && *count < done.size(); ++taken) {
    const Done& arrival = kept_[taken];
    if (is_cancelled(arrival.immediate)) continue;
    counters.arrivals.add();
    counters.bytes_received.add(arrival.bytes);
    done[(*count)++] = arrival;
    if (peer_wants_confirmations_) reported_.push_back(arrival.immediate);
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(taken));
  if (reported_.empty()) return;
  side_connection_->send(SideMessage::kReported, reported_);
  reported_.clear();
}

// The side connection is asked when it may have a confirmation that is waited for, and otherwise a
// thousand times a second. Where the peer's memory is read, it is asked before an arrival is
// reported: see Traits::reads_peer_memory.
void FabricChannel::watch(bool found) {
  const uint64_t now_ns = steady_now_ns();
  const bool waits = !found && options_.confirm_delivery && window_.under_way() > 0;
  const bool checks = rail_.domain().traits().reads_peer_memory && !kept_.empty();
  if (!waits && !checks && now_ns < messages_due_ns_) return;
  messages_due_ns_ = now_ns + kMessagesPauseNs;
  read_messages();
  if (!rail_.domain().traits().refuses_silently || state_ != State::kReady) return;
  report_completed(now_ns);
  look_for_refused_works();
}

bool FabricChannel::silent_for(uint64_t ns) {
  if (rail_.domain().traits().in_hardware) {
    return window_.incomplete_count() > 0 && steady_now_ns() - last_completed_ns_ >= ns;
  }
  return side_connection_ == nullptr || side_connection_->silent_for(ns);
}

void FabricChannel::fence() {
  if (state_ == State::kFenced) return;
  fail_with(fenced_off(where()));
  end();
  kept_.clear();
  state_ = State::kFenced;
}

}  // namespace slime::fabric
