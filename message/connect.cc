// The set-up of comms (comm.h): the end that connects a link becomes the sender, and the end that
// listens the receiver.
#include <algorithm>

#include "link/setup/setup.h"
#include "message/message_owner.h"
#include "message/recv_comm.h"
#include "message/send_comm.h"

namespace slime {
namespace {

static_assert(sizeof(LinkAddress) <= kHandleBytes - 16, "the plugin uses the last 16 bytes");

// The receiver's CPU copies eager messages to their target, and cannot write device memory.
uint64_t eager_max_of_receiver(const Devices& devices, const Device* device,
                               const CommOptions& options) {
  const bool may_copy =
      options.host_memory || device == nullptr || !device->properties().takes_device_memory();
  return may_copy ? devices.settings().eager_max : 0;
}

class ListenerImpl final : public Listener {
 public:
  ListenerImpl(Devices& devices, int device, const CommOptions& options)
      : devices_(devices),
        device_(devices.device(device)),
        host_memory_(options.host_memory),
        owner_(eager_max_of_receiver(devices, device_, options)) {}

  Result<void> open(int device, int traffic_class, Handle* handle) {
    auto listener = LinkListener::open(devices_, device, owner_, traffic_class);
    if (!listener) return fail(std::move(listener.error()));
    links_ = std::move(*listener);
    const LinkAddress address = links_->address();
    handle->fill(std::byte{0});
    std::ranges::copy(address, handle->begin());
    return {};
  }

  Result<std::unique_ptr<RecvComm>> accept() override {
    auto parts = links_->accept();
    if (!parts) return fail(std::move(parts.error()));
    if (*parts == nullptr) return nullptr;
    return std::make_unique<RecvCommImpl>(devices_, *device_, std::move(**parts), host_memory_);
  }

 private:
  Devices& devices_;
  Device* const device_;
  const bool host_memory_;
  MessageOwner owner_;
  std::unique_ptr<LinkListener> links_;  // last: it uses the owner
};

class ConnectorImpl final : public Connector {
 public:
  explicit ConnectorImpl(Devices& devices, int device)
      : devices_(devices), device_(devices.device(device)), owner_(devices.settings().eager_max) {}

  Result<void> open(int device, int traffic_class, const Handle& handle) {
    LinkAddress address;
    std::copy_n(handle.begin(), address.size(), address.begin());
    auto connector = LinkConnector::open(devices_, device, address, owner_, traffic_class);
    if (!connector) return fail(std::move(connector.error()));
    link_ = std::move(*connector);
    return {};
  }

  Result<std::unique_ptr<SendComm>> step() override {
    auto parts = link_->step();
    if (!parts) return fail(std::move(parts.error()));
    if (*parts == nullptr) return nullptr;
    return std::make_unique<SendCommImpl>(devices_, *device_, std::move(**parts));
  }

 private:
  Devices& devices_;
  Device* const device_;
  const MessageOwner owner_;
  std::unique_ptr<LinkConnector> link_;  // last: it uses the owner
};

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(Devices& devices, int device, Handle* handle,
                                                 const CommOptions& options) {
  auto listener = std::make_unique<ListenerImpl>(devices, device, options);
  auto opened = listener->open(device, options.chosen_class(devices.settings()), handle);
  if (!opened) return fail(std::move(opened.error()));
  return listener;
}

Result<std::unique_ptr<Connector>> Connector::open(Devices& devices, int device,
                                                   const Handle& handle,
                                                   const CommOptions& options) {
  auto connector = std::make_unique<ConnectorImpl>(devices, device);
  auto opened = connector->open(device, options.chosen_class(devices.settings()), handle);
  if (!opened) return fail(std::move(opened.error()));
  return connector;
}

}  // namespace slime
