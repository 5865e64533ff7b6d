// What the ends of a libfabric channel tell each other over the side connection.
#include <algorithm>
#include <utility>

#include "transports/channel_common.h"
#include "transports/fabric/channel.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

// A provider that drops a write without a word has dropped it when its receiver has looked for it
// this often, and found nothing.
constexpr uint32_t kEmptyReads = 16;
constexpr uint64_t kReportPauseNs = 20'000'000;

}  // namespace

void FabricChannel::read_messages() {
  if (side_connection_ == nullptr || peer_ended_ || !hello_sent_) return;
  const Status status = side_connection_->poll();
  SideMessage message = SideMessage::kHello;
  std::span<const uint32_t> words;
  while (!peer_ended_ && side_connection_->next(&message, &words)) {
    if (auto taken = take_message(message, words); !taken) {
      fail_with(prefixed(where(), std::move(taken.error())));
      return;
    }
  }
  if (status == Status::kOk || peer_ended_) return;
  Error error = side_connection_->failure();
  error.what = "the connection beside it failed: " + error.what;
  fail_with(prefixed(where(), std::move(error)));
}

Result<void> FabricChannel::take_message(SideMessage message, std::span<const uint32_t> words) {
  const auto refuse = [&] {
    return fail(
        make_error(Status::kRemote, 0,
                   "the peer sent message %d of %zu words, which does not fit here; use the "
                   "same libnet-slime on all hosts",
                   static_cast<int>(message), words.size()));
  };
  switch (message) {
    case SideMessage::kHello:
      if (state_ != State::kGreeting) return refuse();
      return take_hello(words);
    case SideMessage::kReady:
      if (state_ != State::kExpecting) return refuse();
      state_ = State::kWarming;
      return {};
    case SideMessage::kReported:
      if (!options_.confirm_delivery || !window_.report(words)) return refuse();
      return {};
    case SideMessage::kComplete:
      if (words.size() != 2) return refuse();
      peer_complete_ = uint64_t{words[1]} << 32 | words[0];
      empty_reads_ = 0;
      return {};
    case SideMessage::kCancelled:
      if (!rail_.domain().traits().reads_peer_memory ||
          cancelled_.size() + words.size() > kSendQueueDepth) {
        return refuse();
      }
      cancelled_.insert(cancelled_.end(), words.begin(), words.end());
      return {};
    case SideMessage::kWarm:
      if (state_ != State::kWarming) return refuse();
      peer_is_warm_ = true;
      return {};
    case SideMessage::kFailed:
      return fail(make_error(Status::kRemote, 0,
                             "the peer closed the channel, or its end failed%s; look at its log "
                             "first",
                             undelivered(undelivered_works()).c_str()));
    case SideMessage::kEnd:
      peer_ended_ = true;
      return fail(closed_by_peer(undelivered_works()));
  }
  return refuse();
}

bool FabricChannel::is_cancelled(uint32_t immediate) {
  const auto found = std::ranges::find(cancelled_, immediate);
  if (found == cancelled_.end()) return false;
  cancelled_.erase(found);
  return true;
}

// Said when nothing has completed since the last look, so a busy channel says it never.
void FabricChannel::report_completed(uint64_t now_ns) {
  if (now_ns < report_due_ns_) return;
  report_due_ns_ = now_ns + kReportPauseNs;
  const uint64_t complete = window_.completed();
  const bool rests = complete == seen_complete_ && complete != reported_complete_;
  seen_complete_ = complete;
  if (!rests) return;
  reported_complete_ = complete;
  const uint32_t words[] = {static_cast<uint32_t>(complete), static_cast<uint32_t>(complete >> 32)};
  side_connection_->send(SideMessage::kComplete, words);
}

void FabricChannel::look_for_refused_works() {
  if (arrivals_ >= peer_complete_ || empty_reads_ < kEmptyReads) return;
  fail_with(prefixed(where(), refusal_error(peer_complete_ - arrivals_)));
}

}  // namespace slime::fabric
