// Set-up and end of a verbs channel.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "transports/channel_common.h"
#include "transports/verbs/channel.h"
#include "transports/verbs/rail.h"

namespace slime::verbs {
Result<std::unique_ptr<Channel>> VerbsChannel::open(VerbsRail& rail,
                                                    const ChannelOptions& options) {
  auto port = rail.port();
  if (!port) return fail(std::move(port.error()));
  std::unique_ptr<VerbsChannel> channel(new VerbsChannel(rail, options, std::move(*port)));
  auto nonce = random_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  channel->own_.nonce = *nonce;
  auto hellos = Registered<Hellos>::create(rail.nic());
  Result<void> made = channel->create_queues();
  if (made && !hellos) made = fail(std::move(hellos.error()));
  if (made) channel->hellos_ = std::move(*hellos);
  for (Lane& lane : channel->lanes_) {
    if (made) made = channel->prepare(lane);
  }
  if (!made) return fail(prefixed(rail.caps(), std::move(made.error())));
  return channel;
}

Result<void> VerbsChannel::create_queues() {
  const auto lanes = static_cast<uint32_t>(rail_.settings().qps_per_rail);
  const uint32_t depth = rail_.caps().send_queue_depth;
  const uint32_t places = lanes * (depth + kOwnSends + kReceives);
  completions_ = rail_.nic().create_completion_queue(places);
  if (completions_ == nullptr) {
    return fail(system_error(errno,
                             "ibv_create_cq for %u completions failed (max_cqe is %d); set "
                             "NCCL_SLIME_QPS_PER_RAIL lower, and see %s",
                             places, rail_.nic().attributes().max_cqe, limit_behind(errno)));
  }
  own_.queue_pairs = static_cast<uint8_t>(lanes);
  own_.mtu = static_cast<uint8_t>(port_->mtu);
  own_.gid = port_->gid.gid;
  own_.lid = port_->lid;
  own_.link_layer = port_->ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  for (uint32_t i = 0; i < lanes; ++i) {
    auto pair =
        QueuePair::create(port_, completions_.get(), {depth + kOwnSends, kReceives, kInlineBytes});
    if (!pair) return fail(std::move(pair.error()));
    auto psn = random_psn();
    if (!psn) return fail(std::move(psn.error()));
    own_.names[i] = {pair->number(), *psn};
    Lane lane;
    lane.pair = std::move(*pair);
    lane.first_psn = *psn;
    lane.cookies.resize(depth);
    lanes_.push_back(std::move(lane));
  }
  sends_.resize(rail_.caps().max_batch);
  pieces_.resize(rail_.caps().max_batch);
  return {};
}

// Receives may be posted from INIT on; works of the peer may come as soon as it is in RTR.
Result<void> VerbsChannel::prepare(Lane& lane) {
  const auto pkey_index = static_cast<uint16_t>(rail_.settings().pkey_index);
  if (auto made = lane.pair.initialize(pkey_index, IBV_ACCESS_REMOTE_WRITE); !made) return made;
  const bool first = &lane == &lanes_.front();
  for (uint32_t posted = 0; posted < kReceives; posted += kReceiveBatch) {
    if (!post_receives(lane, kReceiveBatch, first && posted == 0)) {
      return fail(system_error(errno, "ibv_post_recv of %u receives failed", kReceives));
    }
  }
  return {};
}

Status VerbsChannel::give_up(Error error) {
  fail_with(prefixed(where(), std::move(error)), State::kFailed);
  return failure_.status;
}

Status VerbsChannel::connect(const ChannelAddress& peer) {
  if (state_ == State::kReady) return Status::kOk;
  if (state_ > State::kReady) return failure_.status;
  Result<void> done = rail_.nic().check_health();
  if (done) done = check_port();
  if (done && state_ == State::kNew) done = begin(peer);
  const bool late = steady_now_ns() >= deadline_ns_;
  ibv_wc completion;
  while (done && state_ != State::kReady && ibv_poll_cq(completions_.get(), 1, &completion) == 1) {
    done = take_setup_completion(completion);
  }
  if (!done) return give_up(std::move(done.error()));
  if (state_ == State::kReady) return Status::kOk;
  if (!late) return Status::kAgain;
  return give_up(make_error(Status::kTimeout, ETIMEDOUT,
                            "the peer did not answer within %g s (NCCL_SLIME_CONNECT_TIMEOUT); "
                            "check that its process lives, that both ports are on one network, and "
                            "that the GID (index %d, %s) is right",
                            rail_.settings().connect_timeout, port_->gid.index,
                            to_string(port_->gid.gid).c_str()));
}

Result<void> VerbsChannel::begin(const ChannelAddress& peer) {
  auto endpoint = unpack_endpoint(peer);
  if (!endpoint) return fail(std::move(endpoint.error()));
  peer_ = *endpoint;
  if (peer_.link_layer != own_.link_layer) {
    return fail(make_error(Status::kConfig, 0,
                           "the peer's port has another link layer; choose "
                           "ports of one kind with NCCL_SLIME_HCA"));
  }
  path_ = Path::from(*port_, rail_.settings(), options_.traffic_class);
  path_.gid = peer_.gid;
  path_.lid = peer_.lid;
  path_.mtu = static_cast<ibv_mtu>(std::min(own_.mtu, peer_.mtu));
  lanes_.resize(std::min<size_t>(own_.queue_pairs, peer_.queue_pairs));
  deadline_ns_ = steady_now_ns() + seconds_to_ns(rail_.settings().connect_timeout);
  state_ = State::kGreeting;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    path_.flow_label = (peer_.names[i].number ^ own_.names[i].number * 0x9e37U) & 0xfffff;
    if (auto ready = lanes_[i].pair.receive_from(path_, peer_.names[i]); !ready) return ready;
  }
  return options_.first ? Result<void>() : greet();
}

// On the first lane only: the other end has made all lanes ready to receive before it sends.
Result<void> VerbsChannel::greet() {
  for (Lane& lane : lanes_) {
    if (auto ready = lane.pair.send_to(path_, lane.first_psn); !ready) return ready;
  }
  hellos_->value.out = Hello{.from = own_.nonce, .to = peer_.nonce};
  ibv_sge piece = hellos_->piece(hellos_->value.out);
  ibv_send_wr request = {};
  request.wr_id = WorkId{WorkId::Kind::kHello, 0, 0, 0}.pack();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  const int code = lanes_[0].pair.post(&request);
  if (code == 0) return {};
  return fail(system_error(code, "ibv_post_send of the hello failed"));
}

Result<void> VerbsChannel::take_setup_completion(const ibv_wc& completion) {
  const WorkId id = WorkId::unpack(completion.wr_id);
  Lane& lane = lanes_[id.lane];
  lane.receives -= id.kind == WorkId::Kind::kReceive;
  if (completion.status != IBV_WC_SUCCESS) return fail(completion_error(completion));
  if (id.kind != WorkId::Kind::kReceive) return {};
  if (id.lane == 0) return take_hello(completion);
  // The peer has our hello and uses all lanes, or has closed already: this lane was faster than the
  // first with its hello.
  if (completion.wc_flags & IBV_WC_WITH_IMM) {
    kept_.push_back(take_arrival(completion));
  } else {
    lane.has_closed = true;
  }
  return {};
}

Result<void> VerbsChannel::take_hello(const ibv_wc& completion) {
  const Hello hello = hellos_->value.in;
  if (completion.byte_len != sizeof hello) {
    return fail(make_error(Status::kRemote, 0,
                           "the first message has %u bytes, and a hello %zu: it is no peer of ours",
                           completion.byte_len, sizeof hello));
  }
  const bool sound = hello.magic == kMagic && hello.version == kVersion &&
                     hello.from == peer_.nonce && same_nonce(hello.to, own_.nonce);
  if (!sound) {
    return fail(make_error(Status::kRemote, 0,
                           "the hello is not our peer's: wrong magic (0x%x), version (%u, ours is "
                           "%u) or nonce",
                           hello.magic, hello.version, kVersion));
  }
  for (Lane& lane : lanes_) {
    while (lane.receives + kReceiveBatch <= kReceives) {
      if (!post_receives(lane, kReceiveBatch, false)) break;
    }
  }
  if (options_.first) {
    if (auto greeted = greet(); !greeted) return greeted;
  }
  state_ = State::kReady;
  return {};
}

// Writes of the peer that begin later are refused, as registered memory may be in use for something
// else soon. So may that of works that are under way; then the queue pairs are destroyed at once,
// and the peer learns of it from its NIC.
VerbsChannel::~VerbsChannel() {
  const auto refuse_writes = [](Lane& lane) { return lane.pair.refuse_writes(); };
  if (state_ == State::kReady && none_under_way() && std::ranges::all_of(lanes_, refuse_writes)) {
    std::vector<QueuePair> pairs;
    for (Lane& lane : lanes_) pairs.push_back(std::move(lane.pair));
    rail_.closing().add({std::move(completions_), std::move(hellos_), std::move(pairs)});
  }
}

namespace {

constexpr uint64_t kCloseId = UINT64_MAX;  // wr_id; no WorkId looks so

bool post_close(const QueuePair& pair) {
  ibv_send_wr request = {};
  request.wr_id = kCloseId;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  return pair.post(&request) == 0;
}

}  // namespace

ClosingPairs::ClosingPairs(CompletionQueue completions, std::unique_ptr<Registered<Hellos>> hellos,
                           std::vector<QueuePair> pairs)
    : completions_(std::move(completions)), hellos_(std::move(hellos)), pairs_(std::move(pairs)) {
  left_ = static_cast<size_t>(std::ranges::count_if(pairs_, post_close));
}

// What the peer has sent meanwhile is reported to nobody.
bool ClosingPairs::is_done() {
  const int polled = take_all(completions_.get(), [this](const ibv_wc& completion) {
    left_ -= completion.wr_id == kCloseId;
  });
  return left_ == 0 || polled < 0;
}

}  // namespace slime::verbs
