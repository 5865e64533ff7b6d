#include <algorithm>
#include <utility>

#include "base/interfaces/interfaces.h"
#include "base/log.h"
#include "transports/hca_filter.h"
#include "transports/verbs/rail.h"

namespace slime::verbs {
namespace {

using Rails = std::vector<std::unique_ptr<Rail>>;

constexpr uint32_t kSendQueueDepth = 256, kReadDepth = 64;

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
  if (nic->has_reads()) {  // silent writes need them (lanes.h)
    caps.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
    caps.max_outstanding_reads = kReadDepth;
  }
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
  auto interfaces = list_interfaces(settings.ifname, variable_of("NCCL_SLIME_IFNAME"),
                                    settings.socket_subnet, settings.socket_family);
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
