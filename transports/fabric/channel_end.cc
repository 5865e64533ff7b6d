// How a libfabric channel fails, is fenced and ends.
#include <utility>

#include "settings/times.h"
#include "transports/channel_common.h"
#include "transports/fabric/channel.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {

std::string FabricChannel::where() const {
  return "rail " + rail_.caps().name + (peer_name_.empty() ? "" : " to " + peer_name_);
}

// A NIC may still write completions of what it has written.
void FabricChannel::fail_with(Error error) {
  if (state_ >= State::kBroken) return;
  failure_ = std::move(error);
  announce_failure();
  state_ = State::kBroken;
  broken_ns_ = steady_now_ns() + (rail_.domain().traits().in_hardware ? times::kFenceDrain : 0);
}

Status FabricChannel::give_up(Error error) {
  fail_with(prefixed(where(), std::move(error)));
  state_ = State::kFailed;
  return failure_.status;
}

// A peer that reads our memory must not report what was under way: that memory may be reused soon.
void FabricChannel::announce_failure() {
  if (failure_announced_ || side_connection_ == nullptr || !setup_.hello_sent()) return;
  failure_announced_ = true;
  const auto cancelled = sender_.window().incomplete();
  if (rail_.domain().traits().reads_peer_memory && !cancelled.empty()) {
    side_connection_->send(SideMessage::kCancelled, cancelled);
  }
  side_connection_->send(SideMessage::kFailed);
}

void FabricChannel::fence() {
  if (state_ == State::kFenced) return;
  fail_with(fenced_off(where()));
  end();
  arrivals_.drop_kept();
  state_ = State::kFenced;
}

// Nothing of the peer's arrives any more when this returns. An endpoint that the peer may still
// touch, and messages that the kernel has not taken yet, go to the rail's ClosingEndpoints.
void FabricChannel::end() {
  if (side_connection_ == nullptr) return;
  announce_failure();
  const bool peer_uses_it =
      rail_.domain().traits().reads_peer_memory && setup_.hello_sent() && !peer_ended_;
  if (!peer_uses_it) endpoint_ = Endpoint();
  if (setup_.hello_sent()) side_connection_->send(SideMessage::kEnd);
  if (peer_uses_it || !side_connection_->all_sent()) {
    rail_.closing().add({std::move(endpoint_), std::move(side_connection_)});
  }
  endpoint_ = Endpoint();
  side_connection_ = nullptr;
}

FabricChannel::~FabricChannel() { end(); }

bool ClosingEndpoint::is_done() {
  const Status status = side_connection->poll();
  SideMessage message = SideMessage::kHello;
  std::span<const uint32_t> words;
  while (side_connection->next(&message, &words)) {
    if (message == SideMessage::kEnd) return true;
  }
  return status != Status::kOk || (endpoint.get() == nullptr && side_connection->all_sent());
}

}  // namespace slime::fabric
