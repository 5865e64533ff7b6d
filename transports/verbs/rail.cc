#include "transports/verbs/rail.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/net/interfaces.h"
#include "transports/channel_common.h"
#include "transports/hca_filter.h"
#include "transports/verbs/channel.h"
#include "transports/verbs/flusher.h"

namespace slime::verbs {
namespace {

using Rails = std::vector<std::unique_ptr<Rail>>;

constexpr uint32_t kSendQueueDepth = 256;  // a power of two: see Lane::cookies

void warn_of(const Port& port) {
  if (!port.warning.empty()) SLIME_WARN("%s", port.warning.c_str());
}

}  // namespace

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
  const auto start = reinterpret_cast<uintptr_t>(range.address);
  if (start == 0 || range.bytes == 0 || start + range.bytes < start) {
    return fail(make_error(Status::kInvalid, 0,
                           "rail %s: cannot register %zu bytes at %p: not a range", name,
                           range.bytes, range.address));
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

namespace {

// Where the handshake goes: the address of the port's own interface, else of the first that NCCL's
// bootstrap would take.
std::string control_address(const Port& port, const std::vector<Interface>& interfaces) {
  const auto own = std::ranges::find(interfaces, port.interface, &Interface::name);
  if (own != interfaces.end()) return own->address.host();
  return interfaces.empty() ? "" : interfaces.front().address.host();
}

// What all rails are opened with.
struct Opening {
  const Symbols& verbs;
  const std::string& sysfs_root;
  const Settings& settings;
  const GidWish wish;
  const HcaFilter filter;
  const std::vector<Interface> interfaces;
  std::vector<std::string>& notes;
};

std::unique_ptr<Rail> open_port(const Opening& with, const std::shared_ptr<Nic>& nic, int number) {
  if (!with.filter.lets_through(nic->name(), number)) {
    with.notes.push_back(nic->name() + ":" + std::to_string(number) + ": excluded by " +
                         variable_of("NCCL_SLIME_HCA"));
    return nullptr;
  }
  auto port = read_port(nic, number, with.wish);
  if (!port) {
    with.notes.push_back(port.error().what);
    return nullptr;
  }
  const std::string address = control_address(*port, with.interfaces);
  if (address.empty()) {
    with.notes.push_back(nic->name() +
                         ": no interface of this host has an address for the handshake");
    return nullptr;
  }
  RailCaps caps = describe(*port, with.settings, address);
  caps.send_queue_depth = kSendQueueDepth;
  caps.max_batch = std::min(static_cast<uint32_t>(with.settings.max_batch), kSendQueueDepth);
  auto rail = std::make_unique<VerbsRail>(*port, with.settings, caps);
  // Better no rail than one whose every connection fails, as where `ulimit -l` is small.
  if (const auto trial = rail->open_channel({}); !trial) {
    SLIME_WARN("%s is up, but is not used: %s", caps.name.c_str(), trial.error().what.c_str());
    with.notes.push_back(trial.error().what);
    return nullptr;
  }
  warn_of(*port);
  return rail;
}

Rails open_devices(const Opening& with) {
  Rails rails;
  int count = 0;
  ibv_device** const devices = with.verbs.get_device_list(&count);
  if (devices == nullptr || count == 0) {
    with.notes.emplace_back("verbs: no RDMA device (see ibv_devices)");
  }
  for (int i = 0; devices != nullptr && i < count; ++i) {
    if (devices[i]->transport_type != IBV_TRANSPORT_IB) {  // iWARP, and EFA
      with.notes.push_back(std::string(with.verbs.get_device_name(devices[i])) +
                           ": has no reliable connections of InfiniBand or RoCE");
      continue;
    }
    auto nic = Nic::open(with.verbs, devices[i], with.sysfs_root);
    if (!nic) {
      with.notes.push_back(nic.error().what);
      continue;
    }
    for (int number = 1; number <= (*nic)->attributes().phys_port_cnt; ++number) {
      if (auto rail = open_port(with, *nic, number)) rails.push_back(std::move(rail));
    }
  }
  if (devices != nullptr) with.verbs.free_device_list(devices);
  if (count > 0 && rails.empty() && !with.settings.hca.empty()) {
    SLIME_WARN("%s=%s leaves no RDMA port of this host; see slime-info for the reason of each",
               variable_of("NCCL_SLIME_HCA").c_str(), with.settings.hca.c_str());
  }
  std::ranges::sort(rails, {}, [](const auto& rail) { return rail->caps().name; });
  return rails;
}

// Copies of memory in forked children would take pages from under the NIC (ibv_fork_init(3)). Newer
// kernels need nothing.
void prepare_for_fork(const Symbols& verbs) {
  if (verbs.is_fork_initialized == nullptr || verbs.is_fork_initialized() == IBV_FORK_DISABLED) {
    (void)verbs.fork_init();
  }
}

}  // namespace

Result<Rails> open_verbs_rails(const Settings& settings, std::vector<std::string>* notes) {
  std::vector<std::string> unread;
  const auto verbs = load_symbols();
  if (verbs) return open_verbs_rails(**verbs, "/sys", settings, notes);
  (notes == nullptr ? unread : *notes).push_back(verbs.error().what);
  return Rails();
}

Result<Rails> open_verbs_rails(const Symbols& verbs, const std::string& sysfs_root,
                               const Settings& settings, std::vector<std::string>* notes) {
  std::vector<std::string> unread;
  auto wish = parse_wish(settings);
  if (!wish) return fail(std::move(wish.error()));
  auto filter = parse_hca_filter(settings.hca);
  if (!filter) return fail(std::move(filter.error()));
  auto interfaces = list_interfaces(settings.ifname, variable_of("NCCL_SLIME_IFNAME"));
  if (!interfaces) return fail(std::move(interfaces.error()));
  prepare_for_fork(verbs);
  Rails rails =
      open_devices({verbs, sysfs_root, settings, *wish, std::move(*filter),
                    std::move(interfaces->interfaces), notes == nullptr ? unread : *notes});
  const std::string patience = describe_patience(settings);
  if (!rails.empty() && !patience.empty()) SLIME_WARN("%s", patience.c_str());
  return rails;
}

}  // namespace slime::verbs
