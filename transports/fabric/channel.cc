// Opening, set-up and data path of a libfabric channel.
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
constexpr size_t kReadAtOnce = 32;
// Each write of the peer with remote data uses one receive until its arrival is read. If no receive
// is free, the peer's NIC tries again.
constexpr uint32_t kReceivesPerWrite = 2;
// Of EFA's NIC (efa_io_comp_status): memory here, or at the peer, is not registered for that.
constexpr int kInvalidLocalKey = 5, kBadRemoteAddress = 7;
bool is_refusal(int status) { return status == kInvalidLocalKey || status == kBadRemoteAddress; }

}  // namespace

EndpointSizes channel_sizes(const RailCaps& caps, uint32_t depth) {
  const ChannelDepth works(caps, depth);
  return {.completions = 2 * works.writes + works.reads + 1 + kArrivals,
          .receives = kReceivesPerWrite * (depth == 0 ? kSendQueueDepth : works.writes)};
}

Result<std::unique_ptr<Channel>> FabricChannel::open(FabricRail& rail,
                                                     const ChannelOptions& options) {
  ChannelOptions of_side = options;
  of_side.confirm_delivery = false;
  if (options.traffic_class != kNoTrafficClass) rail.warn_unmarked();
  auto side_connection = rail.side_rail().open_channel(of_side);
  if (!side_connection) return fail(std::move(side_connection.error()));
  auto endpoint = Endpoint::open(rail.domain(), channel_sizes(rail.caps(), options.depth));
  if (!endpoint) return fail(prefixed(rail.caps(), std::move(endpoint.error())));
  return std::unique_ptr<Channel>(
      new FabricChannel(rail, options, std::move(*endpoint),
                        std::make_unique<SideConnection>(std::move(*side_connection))));
}

FabricChannel::FabricChannel(FabricRail& rail, const ChannelOptions& options, Endpoint endpoint,
                             std::unique_ptr<SideConnection> side_connection)
    : rail_(rail),
      options_(options),
      endpoint_(std::move(endpoint)),
      side_connection_(std::move(side_connection)),
      address_(side_connection_->address()),
      setup_(rail, endpoint_, *side_connection_, options.confirm_delivery),
      sender_(rail, endpoint_, ChannelDepth(rail.caps(), options.depth), options.confirm_delivery),
      arrivals_(kSendQueueDepth) {}

Status FabricChannel::connect(const ChannelAddress& peer) {
  if (state_ == State::kReady) return Status::kOk;
  if (state_ > State::kReady) return failure_.status;
  const Status dialed = setup_.dial(peer);
  if (dialed == Status::kAgain) return dialed;
  if (dialed != Status::kOk) return give_up(side_connection_->failure());
  peer_name_ = side_connection_->peer_name();
  const bool late = setup_.is_late();  // asked before the messages are read (base/deadline.h)
  read_messages();
  if (state_ == State::kSetUp && setup_.is_warming()) {
    if (auto posted = setup_.warm_up(sender_); !posted) return give_up(std::move(posted.error()));
    if (arrivals_.kept() < kArrivals) (void)read(kReadAtOnce);
    if (state_ == State::kSetUp && setup_.finish()) state_ = State::kReady;
  }
  if (state_ == State::kReady) return Status::kOk;
  if (state_ > State::kReady) {  // a message, or a completion, was wrong
    state_ = State::kFailed;
    return failure_.status;
  }
  return late ? give_up(setup_.timeout_error()) : Status::kAgain;
}

Status FabricChannel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  if (state_ != State::kReady) {
    if (state_ == State::kSetUp) {
      fail_with(posted_early(rail_.caps()));
      state_ = State::kFailed;
    }
    return failure_.status;
  }
  works = works.first(sender_.count_that_fit(works));
  if (works.empty()) return Status::kOk;
  uint64_t bytes = 0;
  for (const Work& work : works) {
    if (!sender_.is_valid(work)) {
      fail_with(prefixed(where(), work_error(rail_, work)));
      return failure_.status;
    }
    bytes += work.length;
  }
  if (const long code = sender_.post(works, taken); code != 0) {
    fail_with(prefixed(where(), post_error(rail_.domain(), code, works[*taken])));
    return failure_.status;
  }
  counters.doorbells.add();
  counters.works.add(works.size());
  counters.bytes_sent.add(bytes);
  return Status::kOk;
}

Status FabricChannel::poll(std::span<Done> done, size_t* count) {
  *count = 0;
  counters.polls.add();
  if (state_ == State::kSetUp || state_ == State::kFenced) return Status::kOk;
  if (state_ == State::kFailed) return failure_.status;
  // The failure is returned by a poll that began after it and found nothing: a peer may confirm the
  // last works, and close, between a read of the queue and the look at its messages.
  const bool was_broken = state_ == State::kBroken;
  const uint64_t now_ns = was_broken ? steady_now_ns() : 0;
  // What is done already has at most half of the room, so that neither kind starves the other.
  *count = sender_.take(done.first((done.size() + 1) / 2));
  const bool over = was_broken && now_ns >= broken_ns_ + times::kFailedChannelDrain;
  const size_t room = arrivals_.kept() == 0 && !over ? done.size() - *count : 0;
  const size_t found = room > 0 ? read(room) : 0;
  if (state_ == State::kReady) post_more();
  if (room > 0 && found == 0) refusals_.read_nothing();
  watch(found > 0);
  if (arrivals_.kept() > 0) report_arrivals(done, count);
  *count += sender_.take(done.subspan(*count));
  if (*count > 0) return Status::kOk;
  counters.empty_polls.add();
  const bool drained = (room > 0 || over) && found == 0 && arrivals_.kept() == 0;
  if (was_broken && drained && now_ns >= broken_ns_) state_ = State::kFailed;
  return state_ == State::kFailed ? failure_.status : Status::kOk;
}

// A read behind silent writes, and works that wait.
void FabricChannel::post_more() {
  long code = sender_.post_behind();
  if (code != 0) {
    Error error = fabric_error(rail_.domain().symbols(), code, "fi_readmsg behind silent writes%s",
                               undelivered(sender_.undelivered()).c_str());
    fail_with(prefixed(where(), std::move(error)));
    return;
  }
  if (sender_.has_waiting()) code = sender_.post_waiting();
  if (code == 0) return;
  fail_with(prefixed(where(), post_error(rail_.domain(), code, sender_.first_waiting())));
}

// Returns how many completions there were.
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
    arrivals_.add(static_cast<uint32_t>(entry.data), entry.len);
    return;
  }
  if (setup_.take_completion(entry.op_context)) return;
  if ((entry.flags & (FI_WRITE | FI_READ)) != 0 && !sender_.complete(entry.op_context)) {
    fail_with(
        prefixed(where(), make_error(Status::kInternal, 0,
                                     "the provider completed a work that is not under way; see its "
                                     "release notes")));
  }
}

size_t FabricChannel::take_error(long code) {
  CompletionError error;
  if (code == -FI_EAVAIL && ::fi_cq_readerr(endpoint_.completions(), &error.known, 0) == 1) {
    const int status = error.known.prov_errno;
    if (rail_.caps().max_outstanding_reads > 0 && is_refusal(status)) {
      sender_.refuse(error.known.op_context, status == kInvalidLocalKey);
    }
    fail_with(prefixed(where(), completion_error(endpoint_.describe(rail_.domain(), error.known),
                                                 error.known.err, sender_.undelivered())));
    return 1;
  }
  if (code != -FI_EAVAIL) {
    fail_with(prefixed(where(), fabric_error(rail_.domain().symbols(), code, "fi_cq_read failed")));
  }
  return 0;
}

// The peer's rail waits for the confirmations, so they are sent at once.
void FabricChannel::report_arrivals(std::span<Done> done, size_t* count) {
  arrivals_.take(done, count, counters);
  if (arrivals_.to_confirm().empty()) return;
  side_connection_->send(SideMessage::kReported, arrivals_.to_confirm());
  arrivals_.to_confirm().clear();
}

// The side connection is read when it may have a confirmation that is waited for, and otherwise a
// thousand times a second. Where this process copies out of the peer's memory
// (Traits::reads_peer_memory), it is read before an arrival is reported, as the peer may have
// cancelled the work.
void FabricChannel::watch(bool found) {
  const uint64_t now_ns = steady_now_ns();
  const bool waits = !found && options_.confirm_delivery && sender_.writes().under_way() > 0;
  const bool checks = rail_.domain().traits().reads_peer_memory && arrivals_.kept() > 0;
  if (!waits && !checks && now_ns < messages_due_ns_) return;
  messages_due_ns_ = now_ns + kMessagesPauseNs;
  read_messages();
  if (rail_.domain().traits().refuses_silently && state_ == State::kReady) exchange_counts(now_ns);
}

bool FabricChannel::silent_for(uint64_t ns) {
  if (rail_.domain().traits().in_hardware) {
    return sender_.incomplete_count() > 0 && steady_now_ns() - last_completed_ns_ >= ns;
  }
  return side_connection_ == nullptr || side_connection_->silent_for(ns);
}

}  // namespace slime::fabric
