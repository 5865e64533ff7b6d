// Set-up and end of a libfabric channel.
#include <algorithm>
#include <utility>

#include "transports/channel_common.h"
#include "transports/fabric/channel.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

constexpr size_t kWarmUpBytes = 8;

}  // namespace

Result<std::unique_ptr<Channel>> FabricChannel::open(FabricRail& rail,
                                                     const ChannelOptions& options) {
  ChannelOptions of_side = options;
  of_side.confirm_delivery = false;
  if (options.traffic_class != kNoTrafficClass) rail.warn_unmarked();
  auto side_connection = rail.side_rail().open_channel(of_side);
  if (!side_connection) return fail(std::move(side_connection.error()));
  auto endpoint = Endpoint::open(rail.domain(), sizes_on(rail));
  if (!endpoint) return fail(prefixed(rail.caps(), std::move(endpoint.error())));
  return std::unique_ptr<Channel>(
      new FabricChannel(rail, options, std::move(*endpoint),
                        std::make_unique<SideConnection>(std::move(*side_connection))));
}

EndpointSizes FabricChannel::sizes_on(const FabricRail& rail) {
  return {.completions = 2 * rail.caps().send_queue_depth + kArrivals, .receives = kReceives};
}

FabricChannel::FabricChannel(FabricRail& rail, const ChannelOptions& options, Endpoint endpoint,
                             std::unique_ptr<SideConnection> side_connection)
    : rail_(rail),
      options_(options),
      endpoint_(std::move(endpoint)),
      side_connection_(std::move(side_connection)),
      address_(side_connection_->address()),
      window_(rail.caps().send_queue_depth, options.confirm_delivery) {}

Status FabricChannel::give_up(Error error) {
  fail_with(prefixed(where(), std::move(error)));
  state_ = State::kFailed;
  return failure_.status;
}

Status FabricChannel::connect(const ChannelAddress& peer) {
  if (state_ == State::kReady) return Status::kOk;
  if (state_ > State::kReady) return failure_.status;
  if (state_ == State::kNew) {
    deadline_ns_ = steady_now_ns() + seconds_to_ns(rail_.settings().connect_timeout);
    state_ = State::kDialing;
  }
  if (state_ == State::kDialing) {
    const Status status = side_connection_->connect(peer);
    if (status == Status::kAgain) return status;
    if (status != Status::kOk) return give_up(side_connection_->failure());
    peer_name_ = side_connection_->peer_name();
    send_hello();
  }
  const bool late = steady_now_ns() >= deadline_ns_;
  read_messages();
  if (state_ == State::kWarming) {
    if (auto warm = warm_up(); !warm) return give_up(std::move(warm.error()));
    await_first_writes();
  }
  if (state_ == State::kReady) return Status::kOk;
  if (state_ > State::kReady) {  // a message, or a completion, was wrong
    state_ = State::kFailed;
    return failure_.status;
  }
  if (!late) return Status::kAgain;
  return give_up(make_error(Status::kTimeout, ETIMEDOUT,
                            "the peer's endpoint did not answer within %g s "
                            "(NCCL_SLIME_CONNECT_TIMEOUT); check that both ends are on one network "
                            "of provider %s (fi_pingpong -p %s -e rdm)",
                            rail_.settings().connect_timeout, rail_.domain().provider().c_str(),
                            rail_.domain().provider().c_str()));
}

void FabricChannel::send_hello() {
  Hello hello;
  const std::vector<std::byte>& name = endpoint_.name();
  hello.flags = options_.confirm_delivery ? kWantsConfirmations : 0;
  hello.name_bytes = static_cast<uint16_t>(name.size());
  hello.scratch_address = rail_.scratch().address;
  hello.scratch_key = rail_.scratch().key;
  std::ranges::copy(name, hello.name.begin());
  side_connection_->send(SideMessage::kHello, pack(hello));
  hello_sent_ = true;
  state_ = State::kGreeting;
}

// Some providers refuse writes of a peer that they were not told of.
Result<void> FabricChannel::take_hello(std::span<const uint32_t> words) {
  auto hello = unpack(words);
  if (!hello) return fail(std::move(hello.error()));
  if (!rail_.is_key(hello->scratch_key)) {
    return fail(make_error(Status::kRemote, 0, "the hello has a key of more than %zu bytes",
                           rail_.domain().info().domain_attr->mr_key_size));
  }
  auto added = endpoint_.add_peer(rail_.domain(), name_in(*hello));
  if (!added) return fail(std::move(added.error()));
  peer_ = *hello;
  peer_address_ = *added;
  peer_wants_confirmations_ = (peer_.flags & kWantsConfirmations) != 0;
  side_connection_->send(SideMessage::kReady);
  state_ = State::kExpecting;
  return {};
}

// Many providers open their connection, or learn what the peer can do, with the first write: it
// must not be one that the engine waits for.
Result<void> FabricChannel::warm_up() {
  if (warm_up_posted_) return {};
  const FabricRail::Scratch& scratch = rail_.scratch();
  const fi_rma_iov target = {peer_.scratch_address + kWarmUpBytes, kWarmUpBytes, peer_.scratch_key};
  const auto lock = rail_.while_copying();
  const long code =
      write({scratch.memory, kWarmUpBytes}, scratch.description, target, &warm_up_, 0, 0);
  warm_up_posted_ = code == 0;
  if (code == 0 || code == -FI_EAGAIN) return {};
  return fail(fabric_error(rail_.domain().symbols(), code, "the first write failed"));
}

void FabricChannel::await_first_writes() {
  const bool was_complete = warm_up_complete_;
  if (kept_.size() < kArrivals) (void)read(kReadAtOnce);
  if (state_ != State::kWarming) return;
  if (warm_up_complete_ && !was_complete) side_connection_->send(SideMessage::kWarm);
  if (warm_up_complete_ && peer_is_warm_) state_ = State::kReady;
}

// The peer, if it reads our memory, hears which arrivals it must not report.
void FabricChannel::announce_failure() {
  if (failure_announced_ || side_connection_ == nullptr || !hello_sent_) return;
  failure_announced_ = true;
  const auto cancelled = window_.incomplete();
  if (rail_.domain().traits().reads_peer_memory && !cancelled.empty()) {
    side_connection_->send(SideMessage::kCancelled, cancelled);
  }
  side_connection_->send(SideMessage::kFailed);
}

// Nothing of the peer's arrives any more when this returns.
void FabricChannel::end() {
  if (side_connection_ == nullptr) return;
  announce_failure();
  const bool peer_uses_it =
      rail_.domain().traits().reads_peer_memory && hello_sent_ && !peer_ended_;
  if (!peer_uses_it) endpoint_ = Endpoint();
  if (hello_sent_) side_connection_->send(SideMessage::kEnd);
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
