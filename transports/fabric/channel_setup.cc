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
  ChannelOptions of_lifeline = options;
  of_lifeline.confirm_delivery = false;
  if (options.traffic_class != kNoTrafficClass) rail.warn_unmarked();
  auto lifeline = rail.lifelines().open_channel(of_lifeline);
  if (!lifeline) return fail(std::move(lifeline.error()));
  auto endpoint = Endpoint::open(rail.domain(), sizes_on(rail));
  if (!endpoint) return fail(prefixed(rail.caps(), std::move(endpoint.error())));
  return std::unique_ptr<Channel>(new FabricChannel(
      rail, options, std::move(*endpoint), std::make_unique<Lifeline>(std::move(*lifeline))));
}

EndpointSizes FabricChannel::sizes_on(const FabricRail& rail) {
  return {.completions = 2 * rail.caps().send_queue_depth + kArrivals, .receives = kReceives};
}

FabricChannel::FabricChannel(FabricRail& rail, const ChannelOptions& options, Endpoint endpoint,
                             std::unique_ptr<Lifeline> lifeline)
    : rail_(rail),
      options_(options),
      endpoint_(std::move(endpoint)),
      lifeline_(std::move(lifeline)),
      address_(lifeline_->address()),
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
    const Status status = lifeline_->connect(peer);
    if (status == Status::kAgain) return status;
    if (status != Status::kOk) return give_up(lifeline_->failure());
    peer_name_ = lifeline_->peer_name();
    greet();
  }
  const bool late = steady_now_ns() >= deadline_ns_;
  listen();
  if (state_ == State::kWarming) {
    if (auto warm = warm_up(); !warm) return give_up(std::move(warm.error()));
    await_warmth();
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

void FabricChannel::greet() {
  Hello hello;
  const std::vector<std::byte>& name = endpoint_.name();
  hello.flags = options_.confirm_delivery ? kWantsConfirmations : 0;
  hello.name_bytes = static_cast<uint16_t>(name.size());
  hello.landing_address = rail_.landing().address;
  hello.landing_key = rail_.landing().key;
  std::ranges::copy(name, hello.name.begin());
  lifeline_->say(LifelineMessage::kHello, pack(hello));
  greeted_ = true;
  state_ = State::kGreeting;
}

// Some providers refuse writes of a peer that they were not told of.
Result<void> FabricChannel::take_hello(std::span<const uint32_t> words) {
  auto hello = unpack(words);
  if (!hello) return fail(std::move(hello.error()));
  if (!rail_.is_key(hello->landing_key)) {
    return fail(make_error(Status::kRemote, 0, "the hello has a key of more than %zu bytes",
                           rail_.domain().info().domain_attr->mr_key_size));
  }
  auto added = endpoint_.add_peer(rail_.domain(), name_in(*hello));
  if (!added) return fail(std::move(added.error()));
  peer_ = *hello;
  peer_address_ = *added;
  peer_wants_confirmations_ = (peer_.flags & kWantsConfirmations) != 0;
  lifeline_->say(LifelineMessage::kReady);
  state_ = State::kExpecting;
  return {};
}

// Many providers open their connection, or learn what the peer can do, with the first write: it
// must not be one that the engine waits for.
Result<void> FabricChannel::warm_up() {
  if (warm_up_posted_) return {};
  const FabricRail::Landing& landing = rail_.landing();
  const fi_rma_iov target = {peer_.landing_address + kWarmUpBytes, kWarmUpBytes, peer_.landing_key};
  const auto lock = rail_.while_copying();
  const long code =
      write({landing.memory, kWarmUpBytes}, landing.description, target, &warm_up_, 0, 0);
  warm_up_posted_ = code == 0;
  if (code == 0 || code == -FI_EAGAIN) return {};
  return fail(fabric_error(rail_.domain().symbols(), code, "the first write failed"));
}

void FabricChannel::await_warmth() {
  const bool was_complete = warm_up_complete_;
  if (kept_.size() < kArrivals) (void)read(kReadAtOnce);
  if (state_ != State::kWarming) return;
  if (warm_up_complete_ && !was_complete) lifeline_->say(LifelineMessage::kWarm);
  if (warm_up_complete_ && peer_is_warm_) state_ = State::kReady;
}

// The peer, if it reads our memory, hears which arrivals it must not report.
void FabricChannel::tell_failure() {
  if (told_failure_ || lifeline_ == nullptr || !greeted_) return;
  told_failure_ = true;
  const auto cancelled = window_.incomplete();
  if (rail_.domain().traits().reads_peer_memory && !cancelled.empty()) {
    lifeline_->say(LifelineMessage::kCancelled, cancelled);
  }
  lifeline_->say(LifelineMessage::kFailed);
}

// Nothing of the peer's arrives any more when this returns.
void FabricChannel::end() {
  if (lifeline_ == nullptr) return;
  tell_failure();
  const bool is_touched = rail_.domain().traits().reads_peer_memory && greeted_ && !peer_left_;
  if (!is_touched) endpoint_ = Endpoint();
  if (greeted_) lifeline_->say(LifelineMessage::kEnd);
  if (is_touched || !lifeline_->all_sent()) {
    rail_.closing().add({std::move(endpoint_), std::move(lifeline_)});
  }
  endpoint_ = Endpoint();
  lifeline_ = nullptr;
}

FabricChannel::~FabricChannel() { end(); }

bool ClosingEndpoint::is_done() {
  const Status status = lifeline->poll();
  LifelineMessage message = LifelineMessage::kHello;
  std::span<const uint32_t> words;
  while (lifeline->next(&message, &words)) {
    if (message == LifelineMessage::kEnd) return true;
  }
  return status != Status::kOk || (endpoint.get() == nullptr && lifeline->all_sent());
}

}  // namespace slime::fabric
