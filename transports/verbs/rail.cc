#include "transports/verbs/rail.h"

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "transports/channel_common.h"
#include "transports/verbs/channel.h"
#include "transports/verbs/flusher.h"
#include "transports/verbs/poller.h"

namespace slime::verbs {
namespace {

constexpr unsigned kFlushersMay = IBV_ACCESS_REMOTE_READ;

// This end may write too: a NIC writes what a read brings, and must where a peer may.
unsigned access_of(uint8_t rights) {
  unsigned access = IBV_ACCESS_LOCAL_WRITE;
  if ((rights & kRemoteWrite) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
  if ((rights & kRemoteRead) != 0) access |= IBV_ACCESS_REMOTE_READ;
  return access;
}

const char* form_of(const MemoryRange& range) { return range.dma_buf >= 0 ? " as a DMA-BUF" : ""; }

}  // namespace

VerbsRail::VerbsRail(const Port& port, const Settings& settings, const RailCaps& caps)
    : settings_(settings), caps_(caps), nic_(port.nic), port_(std::make_shared<const Port>(port)) {}

VerbsRail::~VerbsRail() {
  for (const auto& [key, registration] : memory_) deregister(registration);
}

Carrier VerbsRail::carrier() {
  nic().read_events();
  closing_.poll();
  return nic().port(caps_.port).carrier.load(std::memory_order_relaxed);
}

Result<std::shared_ptr<const Port>> VerbsRail::port() {
  if (auto healthy = nic().check_health(); !healthy) return fail(std::move(healthy.error()));
  const std::lock_guard lock(port_mutex_);
  const uint32_t changes = nic().port(caps_.port).changes.load(std::memory_order_relaxed);
  if (port_->changes == changes) return port_;
  auto wish = parse_wish(settings_);
  if (!wish) return fail(std::move(wish.error()));
  auto read = read_port(nic_, caps_.port, *wish);
  if (!read) return fail(std::move(read.error()));
  if (read->warning != port_->warning) warn_of(*read);
  port_ = std::make_shared<const Port>(std::move(*read));
  return port_;
}

std::shared_ptr<const Port> VerbsRail::last_port() {
  const std::lock_guard lock(port_mutex_);
  return port_;
}

// The NIC may write the parts of a message in any order, as long as its completion comes after
// them: that is a write of its own, which does not pass others (PCI Express Base Specification,
// "Transaction Ordering", row A, column 2).
Result<ibv_mr*> VerbsRail::register_with_nic(ibv_pd* pd, const MemoryRange& range,
                                             unsigned access) {
  const Symbols& verbs = nic().verbs();
  const bool relaxed = settings_.relaxed_ordering != 0 && verbs.reg_mr_iova2 != nullptr;
  if (relaxed) access |= static_cast<unsigned>(IBV_ACCESS_RELAXED_ORDERING);
  const auto flags = static_cast<int>(access);
  const auto address = reinterpret_cast<uint64_t>(range.address);
  ibv_mr* region = nullptr;
  if (range.dma_buf >= 0) {
    region =
        verbs.reg_dmabuf_mr(pd, range.dma_buf_offset, range.bytes, address, range.dma_buf, flags);
  } else if (relaxed) {
    region = verbs.reg_mr_iova2(pd, range.address, range.bytes, address, access);
  } else {
    region = verbs.reg_mr(pd, range.address, range.bytes, flags);
  }
  if (region != nullptr) return region;
  return fail(system_error(errno,
                           "%zu bytes at %p cannot be registered%s; see %s, and max_mr and "
                           "max_mr_size (ibv_devinfo -v)",
                           range.bytes, range.address, form_of(range), limit_behind(errno)));
}

Result<MemoryKeys> VerbsRail::register_memory(const MemoryRange& range) {
  if (auto checked = RegionTable::check(range); !checked) {
    return fail(prefixed(caps_, std::move(checked.error())));
  }
  if (!takes(caps_, range)) {
    return fail(make_error(Status::kUnsupported, 0,
                           "rail %s: %zu bytes of device memory at %p cannot be registered%s: by "
                           "its address it needs the module nvidia_peermem, and as a DMA-BUF a "
                           "driver and a kernel that take those; register host memory",
                           caps_.name.c_str(), range.bytes, range.address, form_of(range)));
  }
  Registration made{.range = range};
  auto key = add(&made);
  if (!key) {
    deregister(made);
    return fail(prefixed(caps_, std::move(key.error())));
  }
  const std::lock_guard lock(memory_mutex_);
  memory_[*key] = made;
  return MemoryKeys{.local = *key, .remote = made.for_peers->rkey};
}

Result<uint64_t> VerbsRail::add(Registration* made) {
  const MemoryRange& range = made->range;
  auto region = register_with_nic(nic().pd(), range, access_of(range.rights));
  if (!region) return fail(std::move(region.error()));
  made->for_peers = *region;
  if (range.dma_buf >= 0 || range.kind != MemoryKind::kHost) {
    region = register_with_nic(nic().flush_pd(), range, kFlushersMay);
    if (!region) return fail(std::move(region.error()));
    made->for_flushers = *region;
  }
  return regions_.add(range, made->for_peers->lkey);
}

// ibv_dereg_mr returns when the NIC uses the range no more.
void VerbsRail::deregister(const Registration& registration) {
  for (ibv_mr* const region : {registration.for_peers, registration.for_flushers}) {
    if (region == nullptr) continue;
    if (const int code = nic().verbs().dereg_mr(region); code != 0) {
      SLIME_WARN("rail %s: ibv_dereg_mr failed with error %d", caps_.name.c_str(), code);
    }
  }
}

void VerbsRail::deregister_memory(const MemoryKeys& keys) {
  if (!regions_.remove(keys.local)) return;
  std::unique_lock lock(memory_mutex_);
  const auto registration = memory_.extract(keys.local);
  lock.unlock();
  deregister(registration.mapped());
}

Result<uint32_t> VerbsRail::flush_key(uint64_t local) {
  const std::lock_guard lock(memory_mutex_);
  const auto found = memory_.find(local);
  if (found == memory_.end()) return 0;
  Registration& registration = found->second;
  if (registration.for_flushers == nullptr) {
    auto region = register_with_nic(nic().flush_pd(), registration.range, kFlushersMay);
    if (!region) return fail(std::move(region.error()));
    registration.for_flushers = *region;
  }
  return registration.for_flushers->rkey;
}

Result<std::unique_ptr<Channel>> VerbsRail::open_channel(const ChannelOptions& options) {
  closing_.poll();
  if (auto checked = check_poller(*this, options); !checked)
    return fail(std::move(checked.error()));
  return VerbsChannel::open(*this, options);
}

Result<std::unique_ptr<Poller>> VerbsRail::open_poller() { return VerbsPoller::open(*this, nic_); }

Result<std::unique_ptr<Flusher>> VerbsRail::open_flusher() { return VerbsFlusher::open(*this); }

}  // namespace slime::verbs
