#include "transports/verbs/device/port.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/machine/sysfs.h"
#include "transports/channel_common.h"

namespace slime::verbs {
namespace {

std::string path_of(const Nic& nic) { return nic.sysfs_root() + "/class/infiniband/" + nic.name(); }

std::string read_text(const std::string& path) { return read_line(path).value_or(""); }

// The library fills in the struct of its first version, and leaves what came later as it is.
Result<ibv_port_attr> query(const Nic& nic, int number) {
  ibv_port_attr attributes = {};
  const int code = nic.verbs().query_port(nic.context(), static_cast<uint8_t>(number),
                                          reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
  if (code == 0) return attributes;
  return fail(system_error(code, "%s:%d: ibv_query_port failed", nic.name().c_str(), number));
}

bool query_gid(const Nic& nic, int port, int index, ibv_gid* gid) {
  return nic.verbs().query_gid(nic.context(), static_cast<uint8_t>(port), index, gid) == 0;
}

std::vector<GidEntry> read_gids(const Nic& nic, int port, int count, bool ethernet) {
  const std::string attributes =
      path_of(nic) + "/ports/" + std::to_string(port) + "/gid_attrs/types/";
  std::vector<GidEntry> table;
  for (int i = 0; i < count; ++i) {
    ibv_gid gid;
    if (!query_gid(nic, port, i, &gid)) continue;
    GidEntry entry;
    entry.index = i;
    std::memcpy(entry.gid.data(), gid.raw, sizeof gid.raw);
    entry.type =
        ethernet ? gid_type_of(read_text(attributes + std::to_string(i))) : GidType::kInfiniBand;
    table.push_back(entry);
  }
  return table;
}

// The driver of NVIDIA's GPUs lets NICs register their memory by its address.
bool has_peer_memory(const std::string& sysfs_root) {
  constexpr const char* kVersions[] = {"/module/nvidia_peermem/version",
                                       "/kernel/mm/memory_peers/nv_mem/version",
                                       "/kernel/mm/memory_peers/nv_mem_nc/version"};
  return std::ranges::any_of(kVersions, [&](const char* path) {
    return ::access((sysfs_root + path).c_str(), F_OK) == 0;
  });
}

std::string address_of(const Port& port) {
  const std::string gid = "GID " + std::to_string(port.gid.index) + " " + to_string(port.gid.gid);
  if (!port.ethernet) return "LID " + std::to_string(port.lid) + ", " + gid;
  return gid + (port.gid.type == GidType::kRoceV1 ? " (RoCE v1)" : " (RoCE v2)");
}

// With the interface of the GID, and a warning if the wish is not met.
Result<void> choose_port_gid(Port* port, int table_length, const GidWish& wish) {
  const Nic& nic = *port->nic;
  const auto table = read_gids(nic, port->number, table_length, port->ethernet);
  std::string warning;
  const auto gid =
      choose_gid(table, port->ethernet ? wish : GidWish::of_infiniband(wish), &warning);
  if (!gid) return fail(gid.error());
  const std::string number = std::to_string(port->number);
  if (!warning.empty()) port->warning = nic.name() + ":" + number + ": " + warning;
  port->gid = *gid;
  if (port->ethernet) {
    port->interface = read_text(path_of(nic) + "/ports/" + number + "/gid_attrs/ndevs/" +
                                std::to_string(gid->index));
  }
  return {};
}

constexpr uint32_t bytes_of(ibv_mtu mtu) { return 128u << mtu; }

}  // namespace

uint32_t speed_mbps(uint8_t active_speed, uint8_t active_width) {
  constexpr std::pair<int, uint32_t> kLanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  constexpr std::pair<int, uint32_t> kSpeeds[] = {{1, 2500},   {2, 5000},    {4, 10000},
                                                  {8, 10000},  {16, 14000},  {32, 25000},
                                                  {64, 50000}, {128, 100000}};
  uint32_t lanes = 1, speed = 10000;
  for (const auto& [code, number] : kLanes) {
    if (code == active_width) lanes = number;
  }
  for (const auto& [code, mbps] : kSpeeds) {
    if (code == active_speed) speed = mbps;
  }
  return lanes * speed;
}

Result<Port> read_port(std::shared_ptr<Nic> nic, int number, const GidWish& wish) {
  const std::string name = nic->name() + ":" + std::to_string(number);
  const uint32_t changes = nic->port(number).changes.load(std::memory_order_relaxed);
  const auto attributes = query(*nic, number);
  if (!attributes) return fail(attributes.error());
  if (attributes->state != IBV_PORT_ACTIVE) {
    return fail(make_error(Status::kConfig, 0,
                           "%s is not active (state %d); check its cable and its interface",
                           name.c_str(), attributes->state));
  }
  if (attributes->link_layer != IBV_LINK_LAYER_ETHERNET &&
      attributes->link_layer != IBV_LINK_LAYER_INFINIBAND) {
    return fail(make_error(Status::kConfig, 0, "%s is neither RoCE nor InfiniBand", name.c_str()));
  }
  Port port;
  port.number = number;
  port.ethernet = attributes->link_layer == IBV_LINK_LAYER_ETHERNET;
  port.mtu = attributes->active_mtu;
  port.lid = attributes->lid;
  port.speed_mbps = speed_mbps(attributes->active_speed, attributes->active_width);
  port.max_message_bytes = attributes->max_msg_sz;
  port.needs_grh = (attributes->flags & IBV_QPF_GRH_REQUIRED) != 0;
  port.changes = changes;
  port.nic = nic;
  auto chosen = choose_port_gid(&port, attributes->gid_tbl_len, wish);
  if (!chosen) return fail(prefixed(name, std::move(chosen.error())));
  Carrier unknown = Carrier::kUnknown;  // events know better
  nic->port(number).carrier.compare_exchange_strong(unknown, Carrier::kUp);
  return port;
}

void warn_of(const Port& port) {
  if (!port.warning.empty()) SLIME_WARN("%s", port.warning.c_str());
}

std::string find_change(const Port& port) {
  ibv_gid gid;
  const auto attributes = query(*port.nic, port.number);
  const bool asked = attributes && query_gid(*port.nic, port.number, port.gid.index, &gid);
  if (!asked) return "its GID table cannot be read any more";
  if (std::memcmp(gid.raw, port.gid.gid.data(), sizeof gid.raw) != 0) {
    return "entry " + std::to_string(port.gid.index) + " of its GID table is not " +
           to_string(port.gid.gid) + " any more";
  }
  if (!port.ethernet && attributes->lid != port.lid) {
    return "its LID is " + std::to_string(attributes->lid) + " now, and was " +
           std::to_string(port.lid);
  }
  return "";
}

std::string find_new_change(const Port& port, uint32_t* seen) {
  const uint32_t changes = port.nic->port(port.number).changes.load(std::memory_order_relaxed);
  return std::exchange(*seen, changes) == changes ? "" : find_change(port);
}

RailCaps describe(const Port& port, const Settings& settings, const std::string& oob_address) {
  const Nic& nic = *port.nic;
  RailCaps caps;
  caps.name = nic.attributes().phys_port_cnt > 1 ? nic.name() + ":" + std::to_string(port.number)
                                                 : nic.name();
  caps.transport = "verbs";
  caps.pci_path = find_pci_function(path_of(nic) + "/device");
  caps.numa_node = read_numa_node(caps.pci_path);
  caps.oob_address = oob_address;
  caps.guid = nic.guid();
  caps.port = port.number;
  caps.link_layer = port.ethernet ? "ethernet" : "infiniband";
  // An InfiniBand subnet is its prefix, the first half of a GID (IBTA, 4.1.1).
  if (!port.ethernet) {
    Gid prefix = port.gid.gid;
    std::fill(prefix.begin() + 8, prefix.end(), uint8_t{0});
    caps.fabric = to_string(prefix);
  }
  caps.mtu = bytes_of(port.mtu);
  caps.reason = address_of(port) + ", MTU " + std::to_string(caps.mtu);
  caps.speed_mbps = port.speed_mbps;
  caps.max_message_bytes = port.max_message_bytes;
  caps.ordered = settings.qps_per_rail == 1;
  caps.arrives_unpolled = true;
  caps.confirms_in_hardware = true;
  caps.dma_buf = nic.takes_dma_bufs();
  if (has_peer_memory(nic.sysfs_root()))
    caps.memory_kinds |= static_cast<uint32_t>(MemoryKind::kCuda);
  return caps;
}

}  // namespace slime::verbs
