#include "tools/switchd/config_keys.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/edit_distance.h"

namespace slime::switchd {
namespace {

Taken take_driver(const std::string& text, Config* config) {
  constexpr std::pair<const char*, Driver> kDrivers[] = {
      {"software", Driver::kSoftware}, {"bmv2", Driver::kBmv2}, {"tofino", Driver::kTofino}};
  for (const auto& [name, driver] : kDrivers) {
    if (text != name) continue;
    config->driver = driver;
    return "";
  }
  return "software, bmv2 or tofino";
}

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
     [](const std::string& text, Config* c) -> Taken {
       constexpr size_t kMostBytes = 255;  // PROG_NAME_LEN of BFRuntime, with the end
       c->program = text;
       return text.empty() || text.size() > kMostBytes ? "the name of a program" : "";
     }},
    {"device.id", "0", "With tofino: the chip, as bf_switchd numbers them",
     [](const std::string& text, Config* c) {
       return take_number(text, 0, 7, &c->device);  // BF_MAX_DEV_COUNT of BFRuntime
     }},
    {"device.mac", "02:00:00:00:00:01",
     "With bmv2 and tofino: the MAC that the switch has at the address of data.listen",
     [](const std::string& text, Config* c) { return take_mac(text, &c->mac); }},
    {"data.listen", "",
     "Where workers send packets: this host's address as they see it, and the UDP port of shard 0; "
     "empty: the address of control.listen, port 28880. With bmv2 and tofino: one that no "
     "host has",
     [](const std::string& text, Config* c) -> Taken {
       c->data_listen = {};
       if (text.empty()) return "";
       if (auto wrong = take_address(text, &c->data_listen); !wrong.empty()) return wrong;
       return c->data_listen.is_any() ? "one address, because workers are told it" : "";
     }},
    {"data.shards", "4", "Threads and ports; each serves its part of every job's slots",
     [](const std::string& text, Config* c) {
       return take_number(text, 1, sap::kMaxShards, &c->shards);
     }},
    {"data.max_lanes", "2048",
     "32-bit words per packet; 360 fit an Ethernet of 1500 bytes (352 over IPv6), 2048 one of "
     "9000; bmv2 takes 64 at most, tofino 32",
     [](const std::string& text, Config* c) {
       return take_number(text, 1, sap::kMaxLanes, &c->max_lanes);
     }},
    {"data.formats", "all",
     "What it adds up: all, or words (32-bit integers only). With words, integers of 8 and 64 bits "
     "and 16-bit floats in 16 bits take more packets",
     [](const std::string& text, Config* c) -> Taken {
       c->formats = text == "words" ? sap::kWordFormats : sap::kKnownFormats;
       return text == "words" || text == "all" ? "" : "all or words";
     }},
    {"data.slot_memory", "256M", "Memory for the slots of all jobs",
     [](const std::string& text, Config* c) { return take_bytes(text, &c->slot_bytes); }},
    {"data.socket_buffer", "4M",
     "Of each shard, each way; net.core.rmem_max and net.core.wmem_max limit it",
     [](const std::string& text, Config* c) { return take_bytes(text, &c->socket_buffer_bytes); }},
    {"data.busy_poll_us", "0",
     "How long a shard looks for packets before it sleeps; less latency, more processor",
     [](const std::string& text, Config* c) {
       return take_number(text, 0, 1'000'000, &c->busy_poll_us);
     }},
    {"control.listen", "127.0.0.1:28900", "Where workers and operators connect: TCP",
     [](const std::string& text, Config* c) { return take_address(text, &c->control_listen); }},
    {"control.key_file", "",
     "File with the key of operators, and of workers where tenants have no keys of their own; "
     "docs/switch.md says how to make one",
     [](const std::string& text, Config* c) -> Taken {
       c->key_file = text;
       return {};
     }},
    {"control.tenant_keys", "",
     "Directory with a key file for each tenant, under the tenant's name; empty: all have the key "
     "of "
     "control.key_file, and nothing keeps tenants apart",
     [](const std::string& text, Config* c) -> Taken {
       c->tenant_keys = text;
       return {};
     }},
    {"control.allow_unauthenticated", "false",
     "Without a key: take requests from other hosts too, from everybody who can connect",
     [](const std::string& text, Config* c) { return take_flag(text, &c->allow_unauthenticated); }},
    {"control.max_connections", "256", "Control connections at a time",
     [](const std::string& text, Config* c) {
       return take_number(text, 1, 10000, &c->max_connections);
     }},
    {"parent.control", "",
     "Control channel of the switch above this one, which sums up what its leaves have summed up; "
     "empty: none",
     [](const std::string& text, Config* c) -> Taken {
       c->parent_control.clear();
       return text.empty() ? "" : take_peer(text, &c->parent_control);
     }},
    {"parent.key_file", "", "File with the parent's key (its control.key_file)",
     [](const std::string& text, Config* c) -> Taken {
       c->parent_key_file = text;
       return {};
     }},
    {"jobs.max", "64", "Jobs at a time",
     [](const std::string& text, Config* c) {
       return take_number(text, 1, net::ControllerOptions::kMaxJobs, &c->max_jobs);
     }},
    {"jobs.lease_s", "30", "Seconds without a heartbeat after which a job is removed",
     [](const std::string& text, Config* c) { return take_number(text, 1, 3600, &c->lease_s); }},
    {"jobs.tree_s", "8", "At the root of a tree: seconds in which all leaves of a job must join",
     [](const std::string& text, Config* c) { return take_number(text, 1, 10, &c->tree_s); }},
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
     [](const std::string& text, Config* c) -> Taken {
       SocketAddress address;
       c->metrics_listen = text;
       return text.empty() ? "" : take_address(text, &address);
     }},
};

bool is_ipv4_host(std::string_view name) {
  const auto address = SocketAddress::parse(name);
  return address && !address->is_ipv6() && address->port() == 0;
}

Taken take_tenant(const std::string& name, bool first_key, const std::string& text,
                  Config* config) {
  auto& quota = config->tenants.try_emplace(name, config->tenant_quota).first->second;
  return first_key ? take_number(text, 0, UINT32_MAX, &quota.max_jobs)
                   : take_bytes(text, &quota.max_slot_bytes);
}

Taken take_host(const std::string& name, bool first_key, const std::string& text, Config* config) {
  HostPlace& host = config->hosts[name];
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
