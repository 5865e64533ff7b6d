// What a libfabric channel says when it fails, and how it fails, is fenced and ends.
#include <cinttypes>
#include <utility>

#include "settings/times.h"
#include "transports/channel_common.h"
#include "transports/fabric/channel.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

const char* advice(int code) {
  switch (code) {
    case FI_EACCES:
    case FI_EKEYREJECTED:
    case FI_EPERM:
      return "the peer refused the address or key: it has closed, or deregistered that memory; "
             "look at its log first";
    case FI_ECONNABORTED:
    case FI_ECONNRESET:
    case FI_ECANCELED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_EHOSTUNREACH:
    case FI_ETIMEDOUT:
      return "the peer does not answer: see whether that process and host live, then check the "
             "network of this NIC";
    default:
      return "see dmesg on both hosts, and set FI_LOG_LEVEL=warn for what the provider says";
  }
}

}  // namespace

Error completion_error(const std::string& description, int code, uint64_t undelivered_works) {
  return make_error(Status::kRemote, code, "%s%s; %s", description.c_str(),
                    undelivered(undelivered_works).c_str(), advice(code));
}

Error post_error(const Domain& domain, long code, const Work& work) {
  Error error =
      fabric_error(domain.symbols(), code, "%s of %u bytes failed",
                   work.opcode == Opcode::kRead ? "fi_readmsg" : "fi_writemsg", work.length);
  error.what += std::string("; ") + advice(error.code);
  return error;
}

Error work_error(const FabricRail& rail, const Work& work) {
  return make_error(Status::kInvalid, 0,
                    "a work of %u bytes at %p is not inside memory registered with key "
                    "0x%" PRIx64 ", or longer than %" PRIu64 ", or its remote key 0x%" PRIx64
                    " has more than %zu bytes, or its target wraps, or RailCaps::opcodes lacks its "
                    "kind; nothing was sent",
                    work.length, static_cast<const void*>(work.local), work.local_key,
                    rail.caps().max_message_bytes, work.remote_key,
                    rail.domain().info().domain_attr->mr_key_size);
}

Error refusal_error(const Domain& domain, uint64_t refused) {
  return make_error(Status::kRemote, 0,
                    "provider %s of this end refused %" PRIu64
                    " of the peer's works, as their address or key is not of registered memory; "
                    "look at the peer's log",
                    domain.provider().c_str(), refused);
}

std::string FabricChannel::where() const {
  return "rail " + rail_.caps().name + (peer_name_.empty() ? "" : " to " + peer_name_);
}

// Completions may come later than the peer's messages, which take another way: unless they are in
// memory that both processes share.
void FabricChannel::fail_with(Error error) {
  if (state_ >= State::kBroken) return;
  failure_ = std::move(error);
  announce_failure();
  state_ = State::kBroken;
  broken_ns_ =
      steady_now_ns() + (rail_.domain().traits().reads_peer_memory ? 0 : times::kFenceDrain);
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
  const auto cancelled = sender_.writes().incomplete();
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
