// A listener: one control socket, any number of peers, strangers turned away.
#include <slime/log.h>

#include <algorithm>
#include <list>
#include <optional>

#include "engine/greeting.h"

namespace slime {
namespace {

class ListenerImpl final : public Listener {
 public:
  ListenerImpl(Fabric& fabric, Device& device, const Nonce& nonce, SocketAddress address, Fd fd)
      : fabric_(fabric), device_(device), nonce_(nonce), address_(address), fd_(std::move(fd)) {}

  void describe(Handle* handle) const {
    HandleFields fields;
    fields.nonce = nonce_;
    fields.address = address_.pack();
    handle->fill(std::byte{0});
    std::memcpy(handle->data(), &fields, sizeof fields);
  }

  Result<std::unique_ptr<RecvComm>> accept() override {
    if (!deadline_) deadline_ = Deadline(fabric_.clock(), fabric_.settings().request_timeout);
    const bool late = deadline_->passed();  // before the look: a held up process looks once more
    if (auto admitted = admit(); !admitted) return fail(admitted.error());
    for (auto greeting = greetings_.begin(); greeting != greetings_.end();) {
      const Status status = greeting->step();
      if (status == Status::kAgain) {
        ++greeting;
        continue;
      }
      Greeting finished = std::move(*greeting);
      greeting = greetings_.erase(greeting);
      if (status == Status::kOk) {
        deadline_.reset();
        return finished.take();
      }
      if (finished.proven()) return fail(finished.error());
      SLIME_WARN("turned a stranger away: %s", finished.error().what.c_str());
    }
    // Who has proven itself has come, and has a deadline of its own.
    if (late && std::ranges::none_of(greetings_, &Greeting::proven)) return fail(nobody_came());
    return nullptr;
  }

 private:
  // Visitors that have not proven themselves yet are bounded: more wait in the kernel's backlog.
  static constexpr size_t kMaxGreetings = 64;

  Result<void> admit() {
    while (greetings_.size() < kMaxGreetings) {
      Accepted accepted;
      Error error;
      const Status status = accept_one(fd_, &accepted, &error);
      if (status == Status::kAgain) return {};
      if (status != Status::kOk) return fail(std::move(error));
      greetings_.emplace_back(fabric_, device_, nonce_, std::move(accepted));
    }
    return {};
  }

  Error nobody_came() const {
    return make_error(Status::kTimeout, 0,
                      "accept on device %s: nobody connected to %s for %.0f s; see whether the "
                      "other rank lives and can reach this address, or raise "
                      "NCCL_SLIME_REQUEST_TIMEOUT",
                      device_.properties().name.c_str(), address_.to_string().c_str(),
                      fabric_.settings().request_timeout);
  }

  Fabric& fabric_;
  Device& device_;
  const Nonce nonce_;
  const SocketAddress address_;
  const Fd fd_;
  std::optional<Deadline> deadline_;  // for a peer to come, from the first accept on
  std::list<Greeting> greetings_;
};

// Control connections take the address of the device's first rail, so that they stay on the
// network that the user chose.
Result<SocketAddress> control_address(const Device& device) {
  const std::string& text = device.rails().front()->caps().oob_address;
  auto address = text.empty() ? Result<SocketAddress>(SocketAddress()) : SocketAddress::parse(text);
  if (address) address->set_port(0);
  return address;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(Fabric& fabric, int device_index, Handle* handle) {
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
  auto listener = std::make_unique<ListenerImpl>(fabric, *device, *nonce, *bound, std::move(*fd));
  listener->describe(handle);
  return listener;
}

}  // namespace slime
