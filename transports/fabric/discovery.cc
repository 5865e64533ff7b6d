#include "transports/fabric/discovery.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "base/device_files.h"
#include "base/interfaces/interfaces.h"
#include "base/log.h"
#include "base/machine/sysfs.h"
#include "transports/fabric/sender.h"

namespace slime::fabric {
namespace {

// The provider of a NIC that nothing else here drives. InfiniBand and RoCE have transports/verbs;
// the software providers are slower than transports/tcp, and cxi does not take writes with remote
// data.
constexpr const char* kOwnProvider = "efa";
constexpr uint32_t kSpeedUnknown = 10'000;  // Mb/s

Info make_hints(const Symbols& symbols, const std::string& provider, const Traits& traits,
                bool device_memory) {
  Info hints = duplicate(symbols, nullptr);
  if (hints == nullptr) return hints;
  hints->caps = FI_MSG | FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;  // Window gives each work one
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->cq_data_size = sizeof(uint32_t);
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (traits.reads || device_memory) hints->caps |= FI_READ | FI_REMOTE_READ;
  if (device_memory) {
    hints->caps |= FI_HMEM;
    hints->domain_attr->mr_mode |= FI_MR_HMEM;
  }
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  return hints;
}

// The NIC's PCI function, "0000:00:1e.0"; empty: none.
std::string pci_address(const fi_info& info) {
  const bool known = info.nic != nullptr && info.nic->bus_attr != nullptr &&
                     info.nic->bus_attr->bus_type == FI_BUS_PCI;
  if (!known) return "";
  const fi_pci_attr& pci = info.nic->bus_attr->attr.pci;
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", pci.domain_id, pci.bus_id, pci.device_id,
                pci.function_id);
  return text;
}

// The device's, "rdmap16s27", where libfabric names it; its domain may be "rdmap16s27-rdm".
std::string name_of(const fi_info& info) {
  const bool known = info.nic != nullptr && info.nic->device_attr != nullptr &&
                     info.nic->device_attr->name != nullptr;
  return known ? info.nic->device_attr->name : info.domain_attr->name;
}

RailCaps describe(const Opening& with, const fi_info& info, const Traits& traits) {
  RailCaps caps;
  const std::string provider = info.fabric_attr->prov_name;
  caps.name = name_of(info);
  if (!traits.in_hardware && caps.name != provider) caps.name = provider + "/" + caps.name;
  caps.transport = "libfabric";
  const std::string pci = pci_address(info);
  if (!pci.empty()) {
    caps.pci_path = find_pci_function(with.sysfs_root + "/bus/pci/devices/" + pci);
    caps.numa_node = read_numa_node(caps.pci_path);
  }
  caps.oob_address = with.side_rail->caps().oob_address;
  caps.guid = std::hash<std::string>{}(pci.empty() ? caps.name : pci);
  caps.fabric = provider;  // the two ends need the same
  const fi_link_attr* const link = info.nic != nullptr ? info.nic->link_attr : nullptr;
  caps.mtu = link != nullptr ? static_cast<uint32_t>(link->mtu) : 0;
  const uint64_t speed = link != nullptr ? link->speed / 1'000'000 : 0;
  caps.speed_mbps = speed > 0 ? static_cast<uint32_t>(speed) : kSpeedUnknown;
  caps.reason = "provider " + provider + " of libfabric " + version_name(with.symbols->version());
  if (traits.device_memory && (info.caps & FI_HMEM) == 0) {
    caps.reason += "; no GPU memory: this libfabric finds no GPU, or was built without CUDA";
  }
  const auto depth = std::min<size_t>(info.tx_attr->size, kSendQueueDepth);
  caps.send_queue_depth = std::bit_floor(static_cast<uint32_t>(std::max<size_t>(depth, 1)));
  caps.max_batch = std::min(static_cast<uint32_t>(with.settings.max_batch), caps.send_queue_depth);
  caps.max_message_bytes = std::min<uint64_t>(info.ep_attr->max_msg_size, uint64_t{1} << 30);
  caps.ordered = false;
  caps.arrives_unpolled = traits.in_hardware;
  caps.keeps_rights = traits.keeps_rights;
  if (traits.reads)
    caps.max_outstanding_reads = kReadDepth;  // unless the NIC turns out to have none
  return caps;
}

// The variable that leaves this domain out, or null. Software providers name their domains as the
// interface below.
const char* exclusion(const Opening& with, const std::string& name, const Traits& traits) {
  if (traits.in_hardware) return with.hcas.lets_through(name, 1) ? nullptr : "NCCL_SLIME_HCA";
  const bool other = std::ranges::find(with.other_interfaces, name) != with.other_interfaces.end();
  return other ? "NCCL_SLIME_IFNAME" : nullptr;
}

Result<Info> ask(const Symbols& symbols, const std::string& provider, const Traits& traits,
                 bool device_memory) {
  const Info hints = make_hints(symbols, provider, traits, device_memory);
  fi_info* list = nullptr;
  int code = -FI_ENOMEM;
  if (hints != nullptr) {
    code = symbols.getinfo(interface_version(symbols), nullptr, nullptr, 0, hints.get(), &list);
  }
  if (code == 0) return Info(list, FreeInfo{&symbols});
  return fail(
      fabric_error(symbols, code, "libfabric: provider %s has no NIC here", provider.c_str()));
}

Result<Info> ask(const Symbols& symbols, const std::string& provider, const Traits& traits) {
  if (traits.device_memory) {
    auto found = ask(symbols, provider, traits, true);
    if (found) return found;
  }
  return ask(symbols, provider, traits, false);
}

// libfabric lists a NIC several times, with its best form first: with IPv4 before IPv6, say.
void find_provider(const Opening& with, const std::string& provider, std::vector<Nic>* nics,
                   std::vector<std::string>* notes) {
  auto traits = traits_of(provider, with.symbols->version());
  auto found = traits ? ask(*with.symbols, provider, *traits) : fail(std::move(traits.error()));
  if (!found) {
    notes->push_back(found.error().what);
    return;
  }
  std::vector<std::string> seen;
  for (const fi_info* info = found->get(); info != nullptr; info = info->next) {
    if (provider != info->fabric_attr->prov_name) continue;  // "tcp" brings "tcp;ofi_rxm" too
    // The other form of efa, from 2.0 on: not all hosts of a job may have it, and its completion
    // queues may overrun.
    if (std::string_view(info->fabric_attr->name) == "efa-direct") continue;
    const std::string name = name_of(*info);
    if (std::ranges::find(seen, name) != seen.end()) continue;
    seen.push_back(name);
    // The provider has opened it, also if it is not used.
    if (traits->in_hardware) keep_from_children(rdma_device_file(name, with.sysfs_root));
    if (const char* const by = exclusion(with, name, *traits)) {
      notes->push_back(name + ": excluded by " + variable_of(by));
    } else {
      nics->push_back({duplicate(*with.symbols, info), *traits, describe(with, *info, *traits)});
    }
  }
  if (!seen.empty()) return;
  notes->push_back("libfabric: no provider " + provider + ", but " +
                   (*found)->fabric_attr->prov_name + "; name it so");
}

Result<std::unique_ptr<FabricRail>> open_nic(const Opening& with, Nic nic) {
  if (nic.traits.fault != nullptr) {
    SLIME_WARN("rail %s (%s): %s", nic.caps.name.c_str(), nic.caps.reason.c_str(),
               nic.traits.fault);
  }
  auto domain = Domain::open(*with.symbols, std::move(nic.info), nic.traits);
  if (!domain) return fail(std::move(domain.error()));
  return FabricRail::open(std::move(*domain), with.side_rail, with.settings, std::move(nic.caps));
}

}  // namespace

std::vector<Nic> find_nics(const Opening& with, std::vector<std::string>* notes) {
  std::vector<Nic> nics;
  const std::string& named = with.settings.fabric_provider;
  find_provider(with, named.empty() ? kOwnProvider : named, &nics, notes);
  std::ranges::sort(nics, {}, [](const Nic& nic) { return nic.caps.name; });
  return nics;
}

std::vector<std::unique_ptr<Rail>> open_nics(const Opening& with, std::vector<Nic> nics,
                                             std::vector<std::string>* notes) {
  std::vector<std::unique_ptr<Rail>> rails;
  for (Nic& nic : nics) {
    auto rail = open_nic(with, std::move(nic));
    if (rail) {
      rails.push_back(std::move(*rail));
    } else {
      notes->push_back(rail.error().what);
    }
  }
  return rails;
}

bool is_wanted(const Settings& settings, const std::string& sysfs_root) {
  if (!settings.fabric_provider.empty()) return true;
  std::error_code absent;
  const std::filesystem::path classes = sysfs_root + "/class";
  std::filesystem::directory_iterator device(classes / "infiniband", absent);
  for (; !absent && device != std::filesystem::directory_iterator(); device.increment(absent)) {
    std::error_code unlinked;
    const auto driver = std::filesystem::read_symlink(device->path() / "device/driver", unlinked);
    if (driver.filename() == "efa") return true;
  }
  return false;
}

Result<Opening> Opening::prepare(const Symbols& symbols, std::shared_ptr<Rail> side_rail,
                                 const Settings& settings, const std::string& sysfs_root) {
  auto hcas = parse_hca_filter(settings.hca);
  if (!hcas) return fail(std::move(hcas.error()));
  auto chosen = list_interfaces(settings.ifname, variable_of("NCCL_SLIME_IFNAME"),
                                settings.socket_subnet, settings.socket_family);
  if (!chosen) return fail(std::move(chosen.error()));
  auto all = interface_records();
  if (!all) return fail(std::move(all.error()));
  Opening opening{&symbols, std::move(side_rail), settings, sysfs_root, std::move(*hcas), {}};
  for (const InterfaceRecord& record : *all) {
    if (std::ranges::find(chosen->interfaces, record.name, &Interface::name) ==
        chosen->interfaces.end()) {
      opening.other_interfaces.push_back(record.name);
    }
  }
  return opening;
}

Result<std::vector<std::unique_ptr<Rail>>> open_fabric_rails(std::shared_ptr<Rail> side_rail,
                                                             const Settings& settings,
                                                             std::vector<std::string>* notes) {
  const auto symbols = load_symbols();
  if (!symbols) {
    notes->push_back(symbols.error().what);
    return std::vector<std::unique_ptr<Rail>>();
  }
  const auto opening = Opening::prepare(**symbols, std::move(side_rail), settings);
  if (!opening) return fail(opening.error());
  return open_nics(*opening, find_nics(*opening, notes), notes);
}

}  // namespace slime::fabric
