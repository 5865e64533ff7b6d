// A listener: one control socket, any number of peers, strangers turned away.

#include <algorithm>
#include <list>
#include <optional>

#include "base/log.h"
#include "engine/setup/incoming_handshake.h"

namespace slime {
namespace {

class ListenerImpl final : public Listener, private VisitorPort {
 public:
  ListenerImpl(Fabric& fabric, Device& device, const Nonce& nonce, SocketAddress address, Fd fd,
               const CommOptions& options)
      : fabric_(fabric),
        device_(device),
        nonce_(nonce),
        address_(address),
        fd_(std::move(fd)),
        options_(options) {}

  void describe(Handle* handle) const {
    HandleFields fields;
    fields.nonce = nonce_;
    fields.address = address_.pack();
    handle->fill(std::byte{0});
    std::memcpy(handle->data(), &fields, sizeof fields);
  }

  Result<std::unique_ptr<RecvComm>> accept() override {
    if (!deadline_) {
      deadline_ = Deadline(fabric_.clock(), seconds_to_ns(fabric_.settings().request_timeout));
    }
    const Deadline::Look look(*deadline_);
    for (auto incoming = incoming_.begin(); incoming != incoming_.end();) {
      const Status status = incoming->step();
      if (status == Status::kAgain) {
        ++incoming;
        continue;
      }
      IncomingHandshake finished = std::move(*incoming);
      incoming = incoming_.erase(incoming);
      if (status == Status::kOk) {
        deadline_.reset();
        return finished.take();
      }
      if (finished.proven()) return fail(finished.error());
      turn_away(finished.error().what);
    }
    Error error;
    const Status status = accept_visitors(fd_, fabric_.clock().now_ns(), &error);
    if (status != Status::kOk && status != Status::kAgain) return fail(std::move(error));
    // Who has proven itself has come, and has a deadline of its own.
    if (look.expired() && std::ranges::none_of(incoming_, &IncomingHandshake::proven))
      return fail(nobody_came());
    return nullptr;
  }

 private:
  std::vector<Visit> visits() const override {
    std::vector<Visit> all;
    for (const IncomingHandshake& incoming : incoming_) {
      if (!incoming.proven()) all.push_back(incoming.visit());
    }
    return all;
  }

  void drop_visit(size_t index) override {
    const auto dropped = std::ranges::find_if(
        incoming_,
        [&index](const IncomingHandshake& incoming) { return !incoming.proven() && index-- == 0; });
    turn_away(dropped->peer() + " said no hello, and others wait for its place");
    dropped->abort();
    incoming_.erase(dropped);
  }

  Status admit(Accepted accepted, Error* /*error*/) override {
    IncomingHandshake& incoming =
        incoming_.emplace_back(fabric_, device_, nonce_, std::move(accepted), options_);
    if (incoming.step() == Status::kAgain || incoming.proven()) return Status::kOk;
    turn_away(incoming.error().what);
    incoming_.pop_back();
    return Status::kOk;
  }

  void turn_away(const std::string& why) {
    const auto end = strangers_.turned_away(fabric_.clock().now_ns());
    if (end) SLIME_WARN("turned a stranger away: %s%s", why.c_str(), end->c_str());
  }

  Error nobody_came() const {
    return make_error(Status::kTimeout, 0,
                      "accept on device %s: nobody connected to %s for %.0f s; see whether the "
                      "other rank lives and can reach this address, or raise "
                      "NCCL_SLIME_REQUEST_TIMEOUT%s",
                      device_.properties().name.c_str(), address_.to_string().c_str(),
                      fabric_.settings().request_timeout, strangers_.summary().c_str());
  }

  Fabric& fabric_;
  Device& device_;
  const Nonce nonce_;
  const SocketAddress address_;
  const Fd fd_;
  const CommOptions options_;
  std::optional<Deadline> deadline_;       // for a peer to come, from the first accept on
  std::list<IncomingHandshake> incoming_;  // oldest first
  StrangerLog strangers_;
};

// Control connections take the address of the device's first rail, so that they stay on the
// network that the user chose. A peer could not dial a wildcard.
Result<SocketAddress> control_address(const Device& device) {
  const RailCaps& caps = device.rails().front()->caps();
  auto address = SocketAddress::parse(caps.oob_address);
  if (!address || address->is_any()) {
    return fail(make_error(Status::kConfig, 0,
                           "rail %s has no address for control connections (\"%s\"); give an "
                           "interface of this host one, and name it in NCCL_SLIME_IFNAME",
                           caps.name.c_str(), caps.oob_address.c_str()));
  }
  address->set_port(0);
  return address;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(Fabric& fabric, int device_index, Handle* handle,
                                                 const CommOptions& options) {
  Device* device = fabric.device(device_index);
  if (device == nullptr) {
    return fail(make_error(Status::kInvalid, 0, "listen: no device %d", device_index));
  }
  auto address = control_address(*device);
  if (!address) return fail(address.error());
  auto fd = listen_on(*address);
  if (!fd) return fail(fd.error());
  auto bound = local_address(*fd);
  if (!bound) return fail(bound.error());
  auto nonce = random_nonce();
  if (!nonce) return fail(nonce.error());
  auto listener =
      std::make_unique<ListenerImpl>(fabric, *device, *nonce, *bound, std::move(*fd), options);
  listener->describe(handle);
  return listener;
}

}  // namespace slime
