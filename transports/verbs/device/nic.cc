#include "transports/verbs/device/nic.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/device_files.h"
#include "base/log.h"
#include "transports/channel_common.h"
#include "transports/verbs/wire.h"

namespace slime::verbs {

namespace {

bool never_waits(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

Result<std::shared_ptr<Nic>> Nic::open(const Symbols& verbs, ibv_device* device,
                                       const std::string& sysfs_root) {
  std::shared_ptr<Nic> nic(new Nic(verbs, verbs.get_device_name(device), sysfs_root));
  if (auto opened = nic->open_device(device); !opened) return fail(opened.error());
  return nic;
}

Error Nic::failure(const char* what, int code) const {
  Error error = system_error(code, "device %s: %s failed; see `ibv_devinfo -d %s` and dmesg",
                             name_.c_str(), what, name_.c_str());
  error.what += descriptor_advice(code);
  return error;
}

Result<void> Nic::open_device(ibv_device* device) {
  guid_ = __builtin_bswap64(verbs_.get_device_guid(device));  // in network order
  context_ = verbs_.open_device(device);
  if (context_ == nullptr) return fail(failure("ibv_open_device"));
  keep_from_children(rdma_device_file(name_, sysfs_root_));
  const int queried = verbs_.query_device(context_, &attributes_);
  if (queried != 0) return fail(failure("ibv_query_device", queried));
  pd_ = verbs_.alloc_pd(context_);
  flush_pd_ = verbs_.alloc_pd(context_);
  if (pd_ == nullptr || flush_pd_ == nullptr) return fail(failure("ibv_alloc_pd"));
  if (!never_waits(context_->async_fd)) return fail(failure("fcntl(O_NONBLOCK) of its events"));
  takes_dma_bufs_ = probe_dma_bufs();
  auto readable = Registered<uint64_t>::create(*this, pd_, IBV_ACCESS_REMOTE_READ);
  if (!readable) {
    Error error = prefixed("device " + name_ + " is not used", std::move(readable.error()));
    SLIME_WARN("%s", error.what.c_str());
    return fail(std::move(error));
  }
  readable_ = std::move(*readable);
  return {};
}

Result<std::shared_ptr<ibv_comp_channel>> Nic::create_event_channel() const {
  ibv_comp_channel* const made = verbs_.create_comp_channel(context_);
  if (made == nullptr) return fail(failure("ibv_create_comp_channel"));
  // A child of fork(2) has lost its descriptor, as ~Nic says.
  const auto destroy = [verbs = &verbs_, process = process_](ibv_comp_channel* channel) {
    if (process == OwnDescriptors::process()) (void)verbs->destroy_comp_channel(channel);
  };
  std::shared_ptr<ibv_comp_channel> channel(made, destroy);
  if (!never_waits(channel->fd)) return fail(failure("fcntl(O_NONBLOCK) of an event channel"));
  return channel;
}

// An event that is not acknowledged would keep its queue from being destroyed.
void Nic::drop_events(ibv_comp_channel& channel) const {
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  while (verbs_.get_cq_event(&channel, &queue, &unused) == 0) verbs_.ack_cq_events(queue, 1);
}

// The call cannot succeed. A kernel or a driver that knows no DMA-BUF says so; others say that
// there is no such descriptor.
bool Nic::probe_dma_bufs() const {
  if (verbs_.reg_dmabuf_mr == nullptr) return false;
  errno = 0;
  ibv_mr* const region = verbs_.reg_dmabuf_mr(pd_, 0, 0, 0, -1, 0);
  const int error = errno;
  if (region != nullptr) (void)verbs_.dereg_mr(region);
  return error != EOPNOTSUPP && error != EPROTONOSUPPORT && error != ENOSYS;
}

// A child of fork(2) has lost the descriptors, and may have opened others under their numbers.
Nic::~Nic() {
  if (process_ != OwnDescriptors::process()) {
    (void)readable_.release();
    return;
  }
  readable_.reset();
  for (ibv_pd* const pd : {flush_pd_, pd_}) {
    if (pd != nullptr) (void)verbs_.dealloc_pd(pd);
  }
  if (context_ == nullptr) return;
  (void)verbs_.close_device(context_);
}

uint8_t Nic::reads() const {
  return static_cast<uint8_t>(std::clamp(attributes_.max_qp_init_rd_atom, 1, kMostReads));
}
uint8_t Nic::reads_of_peer() const {
  return static_cast<uint8_t>(std::clamp(attributes_.max_qp_rd_atom, 1, kMostReads));
}

void Nic::read_events() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread reads them
  ibv_async_event event;
  while (verbs_.get_async_event(context_, &event) == 0) {
    take(event);
    verbs_.ack_async_event(&event);
  }
}

Result<void> Nic::check_health() {
  read_events();
  if (!dead_.load(std::memory_order_relaxed)) return {};
  return fail(make_error(
      Status::kSystem, 0,
      "device %s has failed (IBV_EVENT_DEVICE_FATAL or IBV_EVENT_CQ_ERR); see dmesg, and start the "
      "process again when the device works",
      name_.c_str()));
}

void Nic::take(const ibv_async_event& event) {
  const char* const text = verbs_.event_type_str(event.event_type);
  switch (event.event_type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
      break;
    case IBV_EVENT_CQ_ERR:  // its channels get no completions any more
    case IBV_EVENT_DEVICE_FATAL:
      dead_.store(true, std::memory_order_relaxed);
      SLIME_WARN("device %s: %s; see dmesg", name_.c_str(), text);
      for (PortHealth& health : ports_) health.carrier.store(Carrier::kDown);
      return;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      SLIME_INFO("device %s: %s (qp 0x%x)", name_.c_str(), text, event.element.qp->qp_num);
      return;
    default:
      return;
  }
  const int number = event.element.port_num;
  PortHealth& health = port(number);
  SLIME_INFO("device %s, port %d: %s", name_.c_str(), number, text);
  if (event.event_type == IBV_EVENT_PORT_ERR) health.carrier.store(Carrier::kDown);
  if (event.event_type == IBV_EVENT_PORT_ACTIVE && !dead_) health.carrier.store(Carrier::kUp);
  health.changes.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace slime::verbs
