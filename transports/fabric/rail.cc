#include "transports/fabric/rail.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/log.h"
#include "transports/channel_common.h"
#include "transports/fabric/channel.h"
#include "transports/fabric/flusher.h"

namespace slime::fabric {
namespace {

constexpr size_t kScratchBytes = 4096;  // a page: a forked child shares no other memory with it

}  // namespace

FabricRail::FabricRail(std::unique_ptr<Domain> domain, std::shared_ptr<Rail> side_rail,
                       const Settings& settings, RailCaps caps)
    : settings_(settings),
      side_rail_(std::move(side_rail)),
      domain_(std::move(domain)),
      caps_(std::move(caps)) {}

Result<std::unique_ptr<FabricRail>> FabricRail::open(std::unique_ptr<Domain> domain,
                                                     std::shared_ptr<Rail> side_rail,
                                                     const Settings& settings, RailCaps caps) {
  std::unique_ptr<FabricRail> rail(
      new FabricRail(std::move(domain), std::move(side_rail), settings, std::move(caps)));
  auto prepared = rail->prepare();
  if (prepared) return rail;
  return fail(prefixed(rail->caps_, std::move(prepared.error())));
}

// Opens an endpoint to see what it can do: better no rail than one whose every connection fails.
Result<void> FabricRail::prepare() {
  auto trial = Endpoint::open(*domain_, channel_sizes(caps_));
  if (!trial) return fail(std::move(trial.error()));
  caps_.lines_in_order = trial->caps().lines_in_order;
  if (trial->caps().device_memory) {
    announce_device_memory();
  } else if (domain_->has_device_memory()) {
    caps_.reason += "; no GPU memory: the provider would copy it by calls of CUDA";
  }
  scratch_memory_.reset(new (std::align_val_t{kScratchBytes}) std::byte[kScratchBytes]());
  auto key = regions_.add({scratch_memory_.get(), kScratchBytes});
  if (!key) return fail(std::move(key.error()));
  const uint64_t read_into = trial->caps().device_memory ? FI_READ : 0;
  auto region = domain_->register_memory({scratch_memory_.get(), kScratchBytes}, *key, read_into);
  if (!region) return fail(std::move(region.error()));
  scratch_region_ = std::move(*region);
  scratch_ = {.memory = scratch_memory_.get(),
              .description = ::fi_mr_desc(scratch_region_.get()),
              .address = by_offset() ? 0 : reinterpret_cast<uint64_t>(scratch_memory_.get()),
              .key = ::fi_mr_key(scratch_region_.get())};
  return {};
}

// From 2.5 on the provider efa makes a DMA-BUF of an address by itself. Older ones that take
// DMA-BUFs may refuse every address, though they grant peer to peer.
void FabricRail::announce_device_memory() {
  caps_.dma_buf = domain_->takes_dma_bufs();
  if (!caps_.dma_buf || domain_->symbols().version() >= FI_VERSION(2, 5)) {
    caps_.memory_kinds |= static_cast<uint32_t>(MemoryKind::kCuda);
  }
}

FabricRail::~FabricRail() = default;

void FabricRail::FreePage::operator()(std::byte* page) const {
  ::operator delete[](page, std::align_val_t{kScratchBytes});
}

Carrier FabricRail::carrier() {
  closing_.poll();
  return Carrier::kUnknown;
}

Result<MemoryKeys> FabricRail::register_memory(const MemoryRange& range) {
  if (!takes(caps_, range)) {
    return fail(make_error(Status::kUnsupported, 0,
                           "rail %s (%s): %zu bytes at %p cannot be registered as %s; register "
                           "host memory",
                           caps_.name.c_str(), caps_.reason.c_str(), range.bytes, range.address,
                           range.dma_buf >= 0
                               ? "a DMA-BUF, which needs libfabric 1.20 and a driver "
                                 "that takes them"
                               : "GPU memory by its address"));
  }
  auto key = regions_.add(range);
  if (!key) return fail(prefixed(caps_, std::move(key.error())));
  auto region = domain_->register_memory(range, *key);
  if (!region) {
    regions_.remove(*key);
    return fail(prefixed(caps_, std::move(region.error())));
  }
  regions_.set_handle(*key, reinterpret_cast<uint64_t>(::fi_mr_desc(region->get())));
  const MemoryKeys keys = {.local = *key, .remote = ::fi_mr_key(region->get())};
  const std::lock_guard lock(mutex_);
  memory_[*key] = std::move(*region);
  return keys;
}

// A NIC uses the range no more when its registration is closed. A provider that copies in calls of
// this process is kept from it.
void FabricRail::deregister_memory(const MemoryKeys& keys) {
  std::unique_lock<std::shared_mutex> quiet(copying_, std::defer_lock);
  if (!domain_->traits().in_hardware) quiet.lock();
  if (!regions_.remove(keys.local)) return;
  const std::lock_guard lock(mutex_);
  memory_.erase(keys.local);
}

Result<std::unique_ptr<Channel>> FabricRail::open_channel(const ChannelOptions& options) {
  closing_.poll();
  return FabricChannel::open(*this, options);
}

Result<std::unique_ptr<Flusher>> FabricRail::open_flusher() {
  const bool needed = caps_.dma_buf || takes(caps_, {.kind = MemoryKind::kCuda});
  return needed ? FabricFlusher::open(*this) : nullptr;
}

void FabricRail::warn_unmarked() {
  if (warned_unmarked_.exchange(true)) return;
  SLIME_WARN(
      "rail %s: what goes over libfabric cannot be given a traffic class; unset "
      "NCCL_SLIME_TRAFFIC_CLASS and the communicator's trafficClass, or mark it in the network",
      caps_.name.c_str());
}

}  // namespace slime::fabric
