#include "transports/fabric/setup.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "transports/fabric/rail.h"

namespace slime::fabric {

Setup::Setup(const FabricRail& rail, Endpoint& endpoint, SideConnection& side_connection,
             bool wants_confirmations)
    : rail_(rail),
      endpoint_(endpoint),
      side_connection_(side_connection),
      wants_confirmations_(wants_confirmations) {}

Status Setup::dial(const ChannelAddress& peer) {
  if (hello_sent()) return Status::kOk;
  if (stage_ == Stage::kNew) deadline_.restart(seconds_to_ns(rail_.settings().connect_timeout));
  stage_ = Stage::kDialing;
  const Status status = side_connection_.connect(peer);
  if (status == Status::kOk) send_hello();
  return status;
}

void Setup::send_hello() {
  Hello hello;
  const std::vector<std::byte>& name = endpoint_.name();
  hello.flags = wants_confirmations_ ? kWantsConfirmations : 0;
  hello.name_bytes = static_cast<uint16_t>(name.size());
  hello.scratch_address = rail_.scratch().address;
  hello.scratch_key = rail_.scratch().key;
  std::ranges::copy(name, hello.name.begin());
  side_connection_.send(SideMessage::kHello, pack(hello));
  stage_ = Stage::kGreeting;
}

// kReady answers the hello, as some providers refuse writes of a peer that they do not know yet.
Result<Peer> Setup::take_hello(std::span<const uint32_t> words) {
  const auto hello = unpack(words);
  if (!hello) return fail(hello.error());
  if (!rail_.is_key(hello->scratch_key)) {
    return fail(make_error(Status::kRemote, 0, "the hello has a key of more than %zu bytes",
                           rail_.domain().info().domain_attr->mr_key_size));
  }
  const auto added = endpoint_.add_peer(rail_.domain(), name_in(*hello));
  if (!added) return fail(added.error());
  side_connection_.send(SideMessage::kReady);
  stage_ = Stage::kExpecting;
  return Peer{.address = *added,
              .scratch_address = hello->scratch_address,
              .scratch_key = hello->scratch_key,
              .wants_confirmations = (hello->flags & kWantsConfirmations) != 0};
}

bool Setup::take_ready() {
  if (stage_ != Stage::kExpecting) return false;
  stage_ = Stage::kWarming;
  return true;
}

bool Setup::take_warm() {
  if (stage_ != Stage::kWarming) return false;
  peer_is_warm_ = true;
  return true;
}

Result<void> Setup::warm_up(Sender& sender) {
  if (posted_) return {};
  const long code = sender.post_warm_up(&warm_up_);
  posted_ = code == 0;
  if (code == 0 || code == -FI_EAGAIN) return {};
  return fail(fabric_error(rail_.domain().symbols(), code, "the first write failed"));
}

bool Setup::finish() {
  if (complete_ && !told_) side_connection_.send(SideMessage::kWarm);
  told_ = complete_;
  if (complete_ && peer_is_warm_) stage_ = Stage::kDone;
  return stage_ == Stage::kDone;
}

Error Setup::timeout_error() const {
  const std::string provider = rail_.domain().provider();
  return make_error(Status::kTimeout, ETIMEDOUT,
                    "the peer's endpoint did not answer within %g s "
                    "(NCCL_SLIME_CONNECT_TIMEOUT); check that both ends are on one network "
                    "of provider %s (fi_pingpong -p %s -e rdm)",
                    rail_.settings().connect_timeout, provider.c_str(), provider.c_str());
}

}  // namespace slime::fabric
