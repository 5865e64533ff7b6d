#include "transports/verbs/setup.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/random.h"
#include "transports/verbs/rail.h"

namespace slime::verbs {

Setup::Setup(const VerbsRail& rail, const ChannelOptions& options, std::shared_ptr<const Port> port,
             Lanes& lanes)
    : rail_(rail), options_(options), port_(std::move(port)), lanes_(lanes) {}

Result<void> Setup::open() {
  const auto nonce = random_nonce();
  if (!nonce) return fail(nonce.error());
  own_.nonce = *nonce;
  own_.queue_pairs = static_cast<uint8_t>(lanes_.size());
  own_.mtu = static_cast<uint8_t>(port_->mtu);
  own_.reads = port_->nic->reads();
  own_.reads_of_peer = port_->nic->reads_of_peer();
  const auto& readable = port_->nic->readable();
  own_.behind_writes = reinterpret_cast<uint64_t>(&readable.value);
  own_.behind_writes_key = readable.region->rkey;
  own_.gid = port_->gid.gid;
  own_.lid = port_->lid;
  own_.link_layer = port_->ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    own_.names[i] = {lanes_[i].pair.number(), lanes_[i].first_psn};
  }
  return {};
}

Result<void> Setup::begin(const ChannelAddress& peer) {
  if (stage_ != Stage::kNew) return {};
  const auto endpoint = unpack_endpoint(peer);
  if (!endpoint) return fail(endpoint.error());
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
  path_.reads = std::min(own_.reads, peer_.reads_of_peer);
  path_.reads_of_peer = std::min(own_.reads_of_peer, peer_.reads);
  lanes_.set_readable({peer_.behind_writes, peer_.behind_writes_key});
  lanes_.keep_first(std::min(own_.queue_pairs, peer_.queue_pairs));
  deadline_.restart(seconds_to_ns(rail_.settings().connect_timeout));
  stage_ = Stage::kGreeting;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    path_.flow_label = (peer_.names[i].number ^ own_.names[i].number * 0x9e37U) & 0xfffff;
    if (auto ready = lanes_[i].pair.receive_from(path_, peer_.names[i]); !ready) return ready;
  }
  return options_.first ? Result<void>() : greet();
}

// On the first lane only: the other end has made all lanes ready to receive before it sends.
Result<void> Setup::greet() {
  for (Lane& lane : lanes_.all()) {
    if (auto ready = lane.pair.send_to(path_, lane.first_psn); !ready) return ready;
  }
  lanes_.hellos().out = Hello{.from = own_.nonce, .to = peer_.nonce};
  const int code = lanes_.post_hello();
  if (code == 0) return {};
  return fail(system_error(code, "ibv_post_send of the hello failed"));
}

Result<void> Setup::take_hello(const ibv_wc& completion) {
  const Hello hello = lanes_.hellos().in;
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
  for (Lane& lane : lanes_.all()) (void)lanes_.give_back_receives(lane);
  if (options_.first) {
    if (auto greeted = greet(); !greeted) return greeted;
  }
  stage_ = Stage::kDone;
  return {};
}

Error Setup::timeout_error() const {
  return make_error(Status::kTimeout, ETIMEDOUT,
                    "the peer did not answer within %g s (NCCL_SLIME_CONNECT_TIMEOUT); "
                    "check that its process lives, that both ports are on one network, and "
                    "that the GID (index %d, %s) is right",
                    rail_.settings().connect_timeout, port_->gid.index,
                    to_string(port_->gid.gid).c_str());
}

}  // namespace slime::verbs
