#include "tools/switchd/config_keys.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tools/common/bytes.h"

namespace slime::switchd {
namespace {

// How values are read. Each function takes the value, or returns what it accepts.

template <typename Number>
Mismatch take_number(const std::string& text, uint64_t least, uint64_t most, Number* to) {
  const auto value = parse_whole<uint64_t>(text);
  if (!value || *value < least || *value > most) {
    return "a number from " + std::to_string(least) + " to " + std::to_string(most);
  }
  *to = static_cast<Number>(*value);
  return {};
}

// Such as 64M.
Mismatch take_bytes(const std::string& text, uint64_t* to) {
  const auto bytes = tools::parse_bytes(text);
  if (!bytes || *bytes == 0) return "a number of bytes, such as 64M";
  *to = *bytes;
  return {};
}

Mismatch take_address(const std::string& text, SocketAddress* to) {
  const auto address = SocketAddress::parse(text);
  if (!address) return "a numeric address with a port, such as 10.0.0.1:28880";
  *to = *address;
  return {};
}

// An address of one host with a port, kept as text.
Mismatch take_peer(const std::string& text, std::string* to) {
  SocketAddress address;
  *to = text;
  if (auto wrong = take_address(text, &address); !wrong.empty()) return wrong;
  return address.is_any() || address.port() == 0 ? "one address with a port" : "";
}

Mismatch take_flag(const std::string& text, bool* to) {
  *to = text == "true";
  return text == "true" || text == "false" ? "" : "true or false";
}

// As ip-link(8) prints them.
Mismatch take_mac(const std::string& text, uint64_t* to) {
  const Mismatch accepted = "the MAC of one host, such as 02:00:00:00:00:01";
  if (text.size() != 17) return accepted;
  *to = 0;
  for (size_t at = 0; at < text.size(); at += 3) {
    const auto byte = parse_whole<unsigned>(std::string_view(text).substr(at, 2), 16);
    if (!byte || (at + 2 < text.size() && text[at + 2] != ':')) return accepted;
    *to = *to << 8 | *byte;
  }
  // The lowest bit of the first byte marks an address of many hosts (IEEE 802).
  return *to == 0 || (*to >> 40 & 1) != 0 ? accepted : "";
}

// The same for a member of Config, as Key::take.

template <auto kMember, uint64_t kLeast, uint64_t kMost>
Mismatch number(const std::string& text, Config* config) {
  return take_number(text, kLeast, kMost, &(config->*kMember));
}
template <auto kMember>
Mismatch bytes(const std::string& text, Config* config) {
  return take_bytes(text, &(config->*kMember));
}
template <auto kMember>
Mismatch any_text(const std::string& text, Config* config) {
  config->*kMember = text;
  return {};
}

// The driver is read first: defaults of other keys depend on it.
Mismatch take_driver(const std::string& text, Config* config) {
  constexpr std::pair<const char*, Driver> kDrivers[] = {
      {"software", Driver::kSoftware}, {"bmv2", Driver::kBmv2}, {"tofino", Driver::kTofino}};
  for (const auto& [name, driver] : kDrivers) {
    if (text != name) continue;
    config->driver = driver;
    return "";
  }
  return "software, bmv2 or tofino";
}

constexpr uint64_t kMaxChips = 7;  // BF_MAX_DEV_COUNT of BFRuntime

const Key kKeys[] = {
    {"device.driver", "software",
     "What adds up: software (this program), bmv2 (a simple_switch that runs "
     "switch/p4/v1model/switch.p4), or tofino (a chip that bf_switchd drives)",
     take_driver},
    {"device.runtime", "",
     "The runtime interface of a switch in P4: that of bmv2 (simple_switch --thrift-port; empty: "
     "127.0.0.1:9090), or BFRuntime's gRPC port of bf_switchd (empty: 127.0.0.1:50052)",
     [](const std::string& text, Config* c) {
       const char* standard = c->driver == Driver::kTofino ? "127.0.0.1:50052" : "127.0.0.1:9090";
       return take_peer(text.empty() ? standard : text, &c->runtime);
     }},
    {"device.program", "switch", "With tofino: the P4 program, as bf_switchd calls it",
     [](const std::string& text, Config* c) -> Mismatch {
       constexpr size_t kMostBytes = 255;  // PROG_NAME_LEN of BFRuntime, with the end
       c->program = text;
       return text.empty() || text.size() > kMostBytes ? "the name of a program" : "";
     }},
    {"device.id", "0", "With tofino: the chip, as bf_switchd numbers them",
     number<&Config::device, 0, kMaxChips>},
    {"device.mac", "02:00:00:00:00:01",
     "With bmv2 and tofino: the MAC that the switch has at the address of data.listen",
     [](const std::string& text, Config* c) { return take_mac(text, &c->mac); }},
    {"data.listen", "",
     "Where workers send packets: this host's address as they see it, and the UDP port of shard 0; "
     "empty: the address of control.listen, port 28880. With bmv2 and tofino: one that no "
     "host has",
     [](const std::string& text, Config* c) -> Mismatch {
       c->data_listen = {};
       if (text.empty()) return "";
       if (auto wrong = take_address(text, &c->data_listen); !wrong.empty()) return wrong;
       return c->data_listen.is_any() ? "one address, because workers are told it" : "";
     }},
    {"data.shards", "4", "Threads and ports; each serves its part of every job's slots",
     number<&Config::shards, 1, sap::kMaxShards>},
    {"data.max_lanes", "2048",
     "32-bit words per packet; 360 fit an Ethernet of 1500 bytes (352 over IPv6), 2048 one of "
     "9000; bmv2 takes 64 at most, tofino 32",
     number<&Config::max_lanes, 1, sap::kMaxLanes>},
    {"data.formats", "all",
     "What it adds up: all, or words (32-bit integers only). With words, integers of 8 and 64 bits "
     "and 16-bit floats in 16 bits take more packets",
     [](const std::string& text, Config* c) -> Mismatch {
       c->formats = text == "words" ? sap::kWordFormats : sap::kKnownFormats;
       return text == "words" || text == "all" ? "" : "all or words";
     }},
    {"data.slot_memory", "256M", "Memory for the slots of all jobs", bytes<&Config::slot_bytes>},
    {"data.socket_buffer", "4M",
     "Of each shard, each way; net.core.rmem_max and net.core.wmem_max limit it",
     bytes<&Config::socket_buffer_bytes>},
    {"data.busy_poll_us", "0",
     "How long a shard looks for packets before it sleeps; less latency, more processor",
     number<&Config::busy_poll_us, 0, 1'000'000>},
    {"control.listen", "127.0.0.1:28900", "Where workers and operators connect: TCP",
     [](const std::string& text, Config* c) { return take_address(text, &c->control_listen); }},
    {"control.key_file", "",
     "File with the key of operators, and of workers where tenants have no keys of their own; "
     "docs/switch.md says how to make one",
     any_text<&Config::key_file>},
    {"control.tenant_keys", "",
     "Directory with a key file for each tenant, under the tenant's name; empty: all have the key "
     "of "
     "control.key_file, and nothing keeps tenants apart",
     any_text<&Config::tenant_keys>},
    {"control.allow_unauthenticated", "false",
     "Without a key: take requests from other hosts too, from everybody who can connect",
     [](const std::string& text, Config* c) { return take_flag(text, &c->allow_unauthenticated); }},
    {"control.max_connections", "256", "Control connections at a time",
     number<&Config::max_connections, 1, 10000>},
    {"parent.control", "",
     "Control channel of the switch above this one, which sums up what its leaves have summed up; "
     "empty: none",
     [](const std::string& text, Config* c) -> Mismatch {
       c->parent_control.clear();
       return text.empty() ? "" : take_peer(text, &c->parent_control);
     }},
    {"parent.key_file", "", "File with the parent's key (its control.key_file)",
     any_text<&Config::parent_key_file>},
    {"jobs.max", "64", "Jobs at a time",
     number<&Config::max_jobs, 1, net::ControllerOptions::kMaxJobs>},
    {"jobs.lease_s", "30", "Seconds without a heartbeat after which a job is removed",
     number<&Config::lease_s, 1, 3600>},
    {"jobs.tree_s", "8", "At the root of a tree: seconds in which all leaves of a job must join",
     number<&Config::tree_s, 1, 10>},
    {"jobs.tenant_max_jobs", "16", "Jobs of a tenant that is not named below; 0: no such tenants",
     [](const std::string& text, Config* c) {
       return take_number(text, 0, UINT32_MAX, &c->tenant_quota.max_jobs);
     }},
    {"jobs.tenant_slot_memory", "64M", "Slot memory of a tenant that is not named below",
     [](const std::string& text, Config* c) {
       return take_bytes(text, &c->tenant_quota.max_slot_bytes);
     }},
    {"metrics.listen", "",
     "Where GET /metrics (for Prometheus) and GET /healthz are answered, to everybody who asks; "
     "empty: nowhere; usual: this host's address, port 28901",
     [](const std::string& text, Config* c) -> Mismatch {
       SocketAddress address;
       c->metrics_listen = text;
       return text.empty() ? "" : take_address(text, &address);
     }},
};

bool is_ipv4_host(std::string_view name) {
  const auto address = SocketAddress::parse(name);
  return address && !address->is_ipv6() && address->port() == 0;
}

// A tenant that is named once has the quota of the others for what is not named. Keys of jobs come
// before, as make_config() reads the table first.
Mismatch take_tenant(const std::string& name, bool first_key, const std::string& text,
                     Config* config) {
  auto& quota = config->tenants.try_emplace(name, config->tenant_quota).first->second;
  return first_key ? take_number(text, 0, UINT32_MAX, &quota.max_jobs)
                   : take_bytes(text, &quota.max_slot_bytes);
}

// Both keys are needed, which make_config() finds out: each comes by itself.
Mismatch take_host(const std::string& name, bool first_key, const std::string& text,
                   Config* config) {
  HostPort& host = config->hosts[name];
  if (first_key) return take_mac(text, &host.mac.emplace());
  return take_number(text, 0, 510, &host.port.emplace());
}

const NamedSection kNamed[] = {
    {"hosts.",
     {"mac", "port"},
     "With bmv2 and tofino: the hosts that it forwards to, and the port of each. {address: {mac, "
     "port}}.",
     is_ipv4_host,
     take_host},
    {"tenants.",
     {"max_jobs", "slot_memory"},
     "What tenants may have: {name: {max_jobs, slot_memory}}.",
     [](std::string_view name) { return control::is_tenant_name(std::string(name)); },
     take_tenant},
};

}  // namespace

std::span<const Key> keys() { return kKeys; }

std::span<const NamedSection> named_sections() { return kNamed; }

// The last point ends the name, since names of tenants and addresses have points themselves.
std::optional<NamedKey> named_key(const std::string& text) {
  const size_t point = text.rfind('.');
  for (const NamedSection& section : kNamed) {
    if (!text.starts_with(section.name) || point <= section.name.size()) continue;
    NamedKey found{&section, text.substr(section.name.size(), point - section.name.size()),
                   text.substr(point + 1)};
    if (section.is_name(found.name)) return found;
  }
  return std::nullopt;
}

bool is_key(const std::string& name) {
  if (const auto named = named_key(name)) return named->is_known();
  return std::ranges::any_of(kKeys, [&](const Key& known) { return name == known.name; });
}

// "data", "tenants" or "tenants.NAME".
bool is_section(const std::string& name) {
  return std::ranges::any_of(
             kNamed,
             [&](const NamedSection& section) {
               return name + "." == section.name ||
                      (name.starts_with(section.name) && is_key(name + "." + section.keys[0]));
             }) ||
         std::ranges::any_of(kKeys, [&](const Key& known) {
           return std::string_view(known.name).starts_with(name + ".");
         });
}

// For a key that nobody knows: of all keys and sections, or of the two that its section has. The
// name comes from a file and may be long; the distance is quadratic.
std::string nearest_key(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedSection& section : kNamed) {
    names.emplace_back(section.name.substr(0, section.name.size() - 1));
  }
  for (const Key& known : kKeys) {
    names.emplace_back(known.name);
    names.push_back(names.back().substr(0, names.back().find('.')));
  }
  if (const auto named = named_key(name)) {
    names.clear();
    for (const char* known : named->section->keys) {
      names.push_back(std::string(named->section->name) + named->name + "." + known);
    }
  }
  const std::string shown = name.substr(0, 100);
  return *std::ranges::min_element(
      names, {}, [&](const std::string& known) { return edit_distance(shown, known); });
}

}  // namespace slime::switchd
