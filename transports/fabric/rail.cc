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

// A page each, of channels and of flushers: a forked child shares no other memory with them.
constexpr size_t kScratchBytes = 4096;

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
  auto trial = Endpoint::open(*domain_, channel_sizes(caps_, 0));
  if (!trial) return fail(std::move(trial.error()));
  caps_.lines_in_order = trial->caps().lines_in_order;
  if (trial->caps().device_memory) {
    announce_device_memory();
  } else if (domain_->has_device_memory()) {
    caps_.reason += "; no GPU memory: the provider would copy it by calls of CUDA";
  }
  if (trial->caps().reads) {
    caps_.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
  } else {
    caps_.max_outstanding_reads = 0;
  }
  if (caps_.dma_buf || takes(caps_, {.kind = MemoryKind::kCuda})) {
    auto opened = Domain::open(domain_->symbols(), duplicate(domain_->symbols(), &domain_->info()),
                               domain_->traits());
    if (!opened) return fail(std::move(opened.error()));
    flush_domain_ = std::move(*opened);
  }
  return prepare_scratch();
}

Result<void> FabricRail::prepare_scratch() {
  scratch_memory_.reset(new (std::align_val_t{kScratchBytes}) std::byte[2 * kScratchBytes]());
  auto region = make_scratch(*domain_, scratch_memory_.get(),
                             domain_->access_of(kRemoteWrite | kRemoteRead), &scratch_);
  if (!region) return fail(std::move(region.error()));
  scratch_region_ = std::move(*region);
  if (flush_domain_ == nullptr) return {};
  region =
      make_scratch(*flush_domain_, scratch_memory_.get() + kScratchBytes, FI_READ, &flush_scratch_);
  if (!region) return fail(std::move(region.error()));
  flush_scratch_region_ = std::move(*region);
  return {};
}

Result<Handle<fid_mr>> FabricRail::make_scratch(const Domain& domain, std::byte* memory,
                                                uint64_t access, Scratch* made) {
  const MemoryRange range = {.address = memory, .bytes = kScratchBytes};
  const auto key = regions_.add(range);
  if (!key) return fail(key.error());
  auto region = domain.register_memory(range, *key, access);
  if (!region) return region;
  *made = {.memory = memory,
           .description = ::fi_mr_desc(region->get()),
           .address = by_offset() ? 0 : reinterpret_cast<uint64_t>(memory),
           .key = ::fi_mr_key(region->get())};
  return region;
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
  auto made = register_range(range, *key);
  if (!made) {
    regions_.remove(*key);
    return fail(prefixed(caps_, std::move(made.error())));
  }
  fid_mr* const region = made->for_channels.get();
  regions_.set_handle(*key, reinterpret_cast<uint64_t>(::fi_mr_desc(region)));
  const std::lock_guard lock(mutex_);
  memory_[*key] = std::move(*made);
  return MemoryKeys{.local = *key, .remote = ::fi_mr_key(region)};
}

Result<FabricRail::Registration> FabricRail::register_range(const MemoryRange& range,
                                                            uint64_t key) {
  Registration made{.range = range, .for_channels = {}, .for_flushers = {}};
  auto region = domain_->register_memory(range, key, domain_->access_of(range.rights));
  if (!region) return fail(std::move(region.error()));
  made.for_channels = std::move(*region);
  if (range.dma_buf < 0 && range.kind == MemoryKind::kHost) return made;
  if (auto done = register_for_flushers(&made, key); !done) return fail(std::move(done.error()));
  return made;
}

Result<void> FabricRail::register_for_flushers(Registration* made, uint64_t key) const {
  auto region = flush_domain_->register_memory(made->range, key, FI_REMOTE_READ);
  if (!region) return fail(std::move(region.error()));
  made->for_flushers = std::move(*region);
  return {};
}

Result<uint64_t> FabricRail::flush_key(uint64_t local) {
  const std::lock_guard lock(mutex_);
  const auto found = memory_.find(local);
  if (found == memory_.end()) return 0;
  Registration& registration = found->second;
  if (registration.for_flushers == nullptr) {
    auto done = register_for_flushers(&registration, local);
    if (!done) return fail(std::move(done.error()));
  }
  return ::fi_mr_key(registration.for_flushers.get());
}

// A NIC uses the range no more when its registration is closed. A provider that copies in calls of
// this process is kept from it.
void FabricRail::deregister_memory(const MemoryKeys& keys) {
  std::unique_lock<std::shared_mutex> quiet(copying_, std::defer_lock);
  if (!domain_->traits().in_hardware) quiet.lock();
  if (!regions_.remove(keys.local)) return;
  std::unique_lock lock(mutex_);
  const auto closed = memory_.extract(keys.local);  // at the end of this function
  lock.unlock();                                    // a flusher does not wait for that
}

Result<std::unique_ptr<Channel>> FabricRail::open_channel(const ChannelOptions& options) {
  closing_.poll();
  if (auto checked = check_poller(*this, options); !checked)
    return fail(std::move(checked.error()));
  return FabricChannel::open(*this, options);
}

Result<std::unique_ptr<Flusher>> FabricRail::open_flusher() {
  return flush_domain_ != nullptr ? FabricFlusher::open(*this) : nullptr;
}

void FabricRail::warn_unmarked() {
  if (warned_unmarked_.exchange(true)) return;
  SLIME_WARN(
      "rail %s: what goes over libfabric cannot be given a traffic class; unset "
      "NCCL_SLIME_TRAFFIC_CLASS (with NCCL also the communicator's trafficClass), or mark it in "
      "the network",
      caps_.name.c_str());
}

}  // namespace slime::fabric
