#include "transports/verbs/rail.h"

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "transports/channel_common.h"
#include "transports/verbs/channel.h"
#include "transports/verbs/flusher.h"

namespace slime::verbs {
VerbsRail::VerbsRail(const Port& port, const Settings& settings, const RailCaps& caps)
    : settings_(settings), caps_(caps), nic_(port.nic), port_(std::make_shared<const Port>(port)) {}

VerbsRail::~VerbsRail() {
  for (const auto& [key, region] : memory_) (void)nic().verbs().dereg_mr(region);
}

Carrier VerbsRail::carrier() {
  nic().read_events();
  closing_.poll();
  return nic().port(caps_.port).carrier.load(std::memory_order_relaxed);
}

Result<std::shared_ptr<const Port>> VerbsRail::port() {
  if (auto healthy = nic().check_health(); !healthy) return fail(std::move(healthy.error()));
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  return port_;
}

// The NIC may write the parts of a message in any order, as long as its completion comes after
// them: that is a write of its own, which does not pass others (PCI Express Base Specification,
// "Transaction Ordering", row A, column 2).
ibv_mr* VerbsRail::register_with_nic(const MemoryRange& range) {
  const Symbols& verbs = nic().verbs();
  const bool relaxed = settings_.relaxed_ordering != 0 && verbs.reg_mr_iova2 != nullptr;
  const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ |
                          (relaxed ? static_cast<unsigned>(IBV_ACCESS_RELAXED_ORDERING) : 0U);
  const auto address = reinterpret_cast<uint64_t>(range.address);
  if (range.dma_buf >= 0) {
    return verbs.reg_dmabuf_mr(nic().pd(), range.dma_buf_offset, range.bytes, address,
                               range.dma_buf, static_cast<int>(access));
  }
  if (!relaxed) {
    return verbs.reg_mr(nic().pd(), range.address, range.bytes, static_cast<int>(access));
  }
  return verbs.reg_mr_iova2(nic().pd(), range.address, range.bytes, address, access);
}

Result<MemoryKeys> VerbsRail::register_memory(const MemoryRange& range) {
  const char* const name = caps_.name.c_str();
  const char* const form = range.dma_buf >= 0 ? " as a DMA-BUF" : "";
  if (auto checked = RegionTable::check(range); !checked) {
    return fail(prefixed(caps_, std::move(checked.error())));
  }
  if (!takes(caps_, range)) {
    return fail(make_error(Status::kUnsupported, 0,
                           "rail %s: %zu bytes of device memory at %p cannot be registered%s: by "
                           "its address it needs the module nvidia_peermem, and as a DMA-BUF a "
                           "driver and a kernel that take those; register host memory",
                           name, range.bytes, range.address, form));
  }
  ibv_mr* const region = register_with_nic(range);
  if (region == nullptr) {
    return fail(system_error(errno,
                             "rail %s: %zu bytes at %p cannot be registered%s; see %s, and max_mr "
                             "and max_mr_size (ibv_devinfo -v)",
                             name, range.bytes, range.address, form, limit_behind(errno)));
  }
  auto key = regions_.add(range, region->lkey);
  if (!key) {
    (void)nic().verbs().dereg_mr(region);
    return fail(prefixed(caps_, std::move(key.error())));
  }
  const std::lock_guard lock(mutex_);
  memory_[*key] = region;
  return MemoryKeys{.local = *key, .remote = region->rkey};
}

// ibv_dereg_mr returns when the NIC uses the range no more.
void VerbsRail::deregister_memory(const MemoryKeys& keys) {
  if (!regions_.remove(keys.local)) return;
  ibv_mr* region = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = memory_.find(keys.local);
    region = found->second;
    memory_.erase(found);
  }
  if (const int code = nic().verbs().dereg_mr(region); code != 0) {
    SLIME_WARN("rail %s: ibv_dereg_mr failed with error %d", caps_.name.c_str(), code);
  }
}

Result<std::unique_ptr<Channel>> VerbsRail::open_channel(const ChannelOptions& options) {
  closing_.poll();
  return VerbsChannel::open(*this, options);
}

Result<std::unique_ptr<Flusher>> VerbsRail::open_flusher() { return VerbsFlusher::open(*this); }

}  // namespace slime::verbs
