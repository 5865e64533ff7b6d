// The messages that the ends of a libfabric channel exchange over the side connection.
#include <utility>

#include "transports/channel_common.h"
#include "transports/fabric/channel.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {

void FabricChannel::read_messages() {
  if (side_connection_ == nullptr || peer_ended_ || !setup_.hello_sent()) return;
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
  bool fits = false;
  switch (message) {
    case SideMessage::kHello:
      if (setup_.awaits_hello()) return take_hello(words);
      break;
    case SideMessage::kReady:
      fits = setup_.take_ready();
      break;
    case SideMessage::kWarm:
      fits = setup_.take_warm();
      break;
    case SideMessage::kReported:
      fits = options_.confirm_delivery && sender_.writes().report(words);
      break;
    case SideMessage::kComplete:
      fits = words.size() == 2;
      if (fits) refusals_.peer_completed(uint64_t{words[1]} << 32 | words[0]);
      break;
    case SideMessage::kCancelled:
      fits = rail_.domain().traits().reads_peer_memory && arrivals_.cancel(words);
      break;
    case SideMessage::kFailed:
      return fail(make_error(Status::kRemote, 0,
                             "the peer closed the channel, or its end failed%s; look at its log "
                             "first",
                             slime::undelivered(sender_.undelivered()).c_str()));
    case SideMessage::kEnd:
      peer_ended_ = true;
      return fail(closed_by_peer(sender_.undelivered()));
  }
  if (fits) return {};
  return fail(make_error(Status::kRemote, 0,
                         "the peer sent message %d of %zu words, which does not fit here; use the "
                         "same libnet-slime on all hosts",
                         static_cast<int>(message), words.size()));
}

Result<void> FabricChannel::take_hello(std::span<const uint32_t> words) {
  const auto peer = setup_.take_hello(words);
  if (!peer) return fail(peer.error());
  sender_.set_peer(*peer);
  if (peer->wants_confirmations) arrivals_.confirm_to_peer();
  return {};
}

void FabricChannel::exchange_counts(uint64_t now_ns) {
  if (const auto count = refusals_.count_to_report(sender_.writes().completed(), now_ns)) {
    const uint32_t words[] = {static_cast<uint32_t>(*count), static_cast<uint32_t>(*count >> 32)};
    side_connection_->send(SideMessage::kComplete, words);
  }
  const uint64_t refused = refusals_.refused(arrivals_.count());
  if (refused > 0) fail_with(prefixed(where(), refusal_error(rail_.domain(), refused)));
}

}  // namespace slime::fabric
