// The table of keys: their names, defaults and meanings, and where their values go.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "settings/times.h"
#include "tools/common/bytes.h"
#include "tools/switchd/config.h"

namespace slime::switchd {
namespace {

// How values are read. Each function stores the value, or returns what it accepts.

template <typename Number>
Mismatch take_number(const std::string& text, uint64_t least, uint64_t most, Number* to) {
  const auto value = parse_whole<uint64_t>(text);
  if (!value || *value < least || *value > most) {
    return "a number from " + std::to_string(least) + " to " + std::to_string(most);
  }
  *to = static_cast<Number>(*value);
  return {};
}

Mismatch take_bytes(const std::string& text, uint64_t* to) {
  const auto bytes = tools::parse_bytes(text);
  if (!bytes || *bytes == 0) return "a number of bytes, such as 64M";
  *to = *bytes;
  return {};
}

template <typename Address>
Mismatch take_address(const std::string& text, Address* to) {
  const auto address = SocketAddress::parse(text);
  if (!address) return "a numeric address with a port, such as 10.0.0.1:28880";
  *to = *address;
  return {};
}

// An address of one host with a port.
Mismatch take_peer(const std::string& text, SocketAddress* to) {
  if (auto wrong = take_address(text, to); !wrong.empty()) return wrong;
  return to->is_any() || to->port() == 0 ? "one address with a port" : "";
}

Mismatch take_flag(const std::string& text, bool* to) {
  *to = text == "true";
  return text == "true" || text == "false" ? "" : "true or false";
}

// A MAC as ip-link(8) prints it.
Mismatch take_mac(const std::string& text, uint64_t* to) {
  const Mismatch accepted = "the MAC of one host, such as 02:00:00:00:00:01";
  if (text.size() != 17) return accepted;
  *to = 0;
  for (size_t at = 0; at < text.size(); at += 3) {
    const auto byte = parse_whole<unsigned>(std::string_view(text).substr(at, 2), 16);
    if (!byte || (at + 2 < text.size() && text[at + 2] != ':')) return accepted;
    *to = *to << 8 | *byte;
  }
  // The lowest bit of the first byte marks a group address (IEEE 802).
  return *to == 0 || (*to >> 40 & 1) != 0 ? accepted : "";
}

Mismatch take_seconds(const std::string& text, uint64_t most, uint64_t* to_ns) {
  if (auto wrong = take_number(text, 1, most, to_ns); !wrong.empty()) return wrong;
  *to_ns *= times::kSecond;
  return {};
}

// The same as Key::take, for what kPlace finds in a Config.

using Name = std::string;  // what stands for the '*' of a key

template <auto kPlace, uint64_t kLeast, uint64_t kMost>
Mismatch number(const std::string& text, const Name&, Config* config) {
  return take_number(text, kLeast, kMost, kPlace(config));
}
template <auto kPlace>
Mismatch bytes(const std::string& text, const Name&, Config* config) {
  return take_bytes(text, kPlace(config));
}
template <auto kMember>
Mismatch any_text(const std::string& text, const Name&, Config* config) {
  config->*kMember = text;
  return {};
}

// The driver is read first: defaults of other keys depend on it.
Mismatch take_driver(const std::string& text, const Name&, Config* config) {
  constexpr std::pair<const char*, Driver> kDrivers[] = {
      {"software", Driver::kSoftware}, {"bmv2", Driver::kBmv2}, {"tofino", Driver::kTofino}};
  for (const auto& [name, driver] : kDrivers) {
    if (text != name) continue;
    config->driver = driver;
    return "";
  }
  return "software, bmv2 or tofino";
}

bool is_ipv4_host(const Name& name) {
  const auto address = SocketAddress::parse(name);
  return address && !address->is_ipv6() && address->port() == 0;
}

bool is_tenant(const Name& name) { return control::is_tenant_name(name); }

// A tenant that is named gets the default quota first, so that a key which the file lacks has the
// value of other tenants. make_config() reads the keys of `jobs`, which have the defaults, before.
net::TenantQuota& quota_of(const Name& tenant, Config* config) {
  net::ControllerOptions& options = config->controller;
  return options.tenants.try_emplace(tenant, options.default_quota).first->second;
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
     [](const std::string& text, const Name&, Config* c) {
       const char* standard = c->driver == Driver::kTofino ? "127.0.0.1:50052" : "127.0.0.1:9090";
       return take_peer(text.empty() ? standard : text, &c->p4.runtime);
     }},
    {"device.program", "switch", "With tofino: the P4 program, as bf_switchd calls it",
     [](const std::string& text, const Name&, Config* c) -> Mismatch {
       constexpr size_t kMostBytes = 255;  // PROG_NAME_LEN of BFRuntime, with the end
       c->p4.program = text;
       return text.empty() || text.size() > kMostBytes ? "the name of a program" : "";
     }},
    {"device.id", "0", "With tofino: the chip, as bf_switchd numbers them",
     number<[](Config* c) { return &c->p4.device; }, 0, kMaxChips>},
    {"device.mac", "02:00:00:00:00:01",
     "With bmv2 and tofino: the MAC that the switch has at the address of data.listen",
     [](const std::string& text, const Name&, Config* c) { return take_mac(text, &c->p4.mac); }},
    {"data.listen", "",
     "Where workers send packets: this host's address as they see it, and the UDP port of shard 0; "
     "empty: the address of control.listen, port 28880. With bmv2 and tofino: one that no "
     "host has",
     [](const std::string& text, const Name&, Config* c) -> Mismatch {
       c->data.address = {};
       if (text.empty()) return "";
       if (auto wrong = take_address(text, &c->data.address); !wrong.empty()) return wrong;
       return c->data.address.is_any() ? "one address, because workers are told it" : "";
     }},
    {"data.shards", "4", "Threads and ports; each serves its part of every job's slots",
     number<[](Config* c) { return &c->data.shards; }, 1, sap::kMaxShards>},
    {"data.max_lanes", "2048",
     "32-bit words per packet; 360 fit an Ethernet of 1500 bytes (352 over IPv6), 2048 one of "
     "9000; bmv2 takes 64 at most, tofino 32",
     number<[](Config* c) { return &c->data.max_lanes; }, 1, sap::kMaxLanes>},
    {"data.formats", "all",
     "What it adds up: all, or words (32-bit integers only). With words, integers of 8 and 64 bits "
     "and 16-bit floats in 16 bits take more packets",
     [](const std::string& text, const Name&, Config* c) -> Mismatch {
       c->data.formats = text == "words" ? sap::kWordFormats : sap::kKnownFormats;
       return text == "words" || text == "all" ? "" : "all or words";
     }},
    {"data.slot_memory", "256M", "Memory for the slots of all jobs",
     bytes<[](Config* c) { return &c->data.slot_bytes; }>},
    {"data.socket_buffer", "4M",
     "Of each shard, each way; net.core.rmem_max and net.core.wmem_max limit it",
     bytes<[](Config* c) { return &c->data.socket_buffer_bytes; }>},
    {"data.busy_poll_us", "0",
     "How long a shard looks for packets before it sleeps; less latency, more processor",
     number<[](Config* c) { return &c->data.busy_poll_us; }, 0, 1'000'000>},
    {"control.listen", "127.0.0.1:28900", "Where workers and operators connect: TCP",
     [](const std::string& text, const Name&, Config* c) {
       return take_address(text, &c->control.listen);
     }},
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
     [](const std::string& text, const Name&, Config* c) {
       return take_flag(text, &c->control.allow_unauthenticated);
     }},
    {"control.max_connections", "256", "Control connections at a time",
     number<[](Config* c) { return &c->control.max_connections; }, 1, 10000>},
    {"parent.control", "",
     "Control channel of the switch above this one, which sums up what its leaves have summed up; "
     "empty: none",
     [](const std::string& text, const Name&, Config* c) -> Mismatch {
       return text.empty() ? "" : take_peer(text, &c->controller.parent.emplace());
     }},
    {"parent.key_file", "", "File with the parent's key (its control.key_file)",
     any_text<&Config::parent_key_file>},
    {"jobs.max", "64", "Jobs at a time",
     number<[](Config* c) { return &c->controller.max_jobs; }, 1,
            net::ControllerOptions::kMaxJobs>},
    {"jobs.lease_s", "30", "Seconds without a heartbeat after which a job is removed",
     [](const std::string& text, const Name&, Config* c) {
       return take_seconds(text, 3600, &c->controller.lease_ns);
     }},
    {"jobs.tree_s", "8", "At the root of a tree: seconds in which all leaves of a job must join",
     [](const std::string& text, const Name&, Config* c) {
       return take_seconds(text, times::kLongestTreeWait / times::kSecond, &c->controller.tree_ns);
     }},
    {"jobs.tenant_max_jobs", "16", "Jobs of a tenant that is not named below; 0: no such tenants",
     number<[](Config* c) { return &c->controller.default_quota.max_jobs; }, 0, UINT32_MAX>},
    {"jobs.tenant_slot_memory", "64M", "Slot memory of a tenant that is not named below",
     bytes<[](Config* c) { return &c->controller.default_quota.max_slot_bytes; }>},
    {"metrics.listen", "",
     "Where GET /metrics (for Prometheus) and GET /healthz are answered, to everybody who asks; "
     "empty: nowhere; usual: this host's address, port 28901",
     [](const std::string& text, const Name&, Config* c) -> Mismatch {
       return text.empty() ? "" : take_address(text, &c->metrics_listen);
     }},
    {"hosts.*.mac", "",
     "With bmv2 and tofino: the hosts that it forwards to, and the port of each. {address: {mac, "
     "port}}.",
     [](const std::string& text, const Name& host, Config* c) {
       return take_mac(text, &c->hosts[host].mac.emplace());
     },
     is_ipv4_host},
    {"hosts.*.port", "", "",
     [](const std::string& text, const Name& host, Config* c) {
       return take_number(text, 0, c->driver == Driver::kTofino ? 511 : 510,
                          &c->hosts[host].port.emplace());
     },
     is_ipv4_host},
    {"tenants.*.max_jobs", "", "What tenants may have: {name: {max_jobs, slot_memory}}.",
     [](const std::string& text, const Name& tenant, Config* c) {
       return take_number(text, 0, UINT32_MAX, &quota_of(tenant, c).max_jobs);
     },
     is_tenant},
    {"tenants.*.slot_memory", "", "",
     [](const std::string& text, const Name& tenant, Config* c) {
       return take_bytes(text, &quota_of(tenant, c).max_slot_bytes);
     },
     is_tenant},
};

}  // namespace

std::span<const Key> keys() { return kKeys; }

// Names of tenants and hosts may have points themselves.
std::optional<FoundKey> find_key(const std::string& text) {
  for (const Key& key : kKeys) {
    if (!key.has_star()) {
      if (text == key.name) return FoundKey{&key, ""};
      continue;
    }
    const std::string_view before = key.before_star(), after = key.after_star();
    if (text.size() <= before.size() + after.size() || !text.starts_with(before) ||
        !text.ends_with(after)) {
      continue;
    }
    Name name = text.substr(before.size(), text.size() - before.size() - after.size());
    if (key.is_name(name)) return FoundKey{&key, std::move(name)};
  }
  return std::nullopt;
}

bool is_section(const std::string& text) {
  return std::ranges::any_of(kKeys, [&](const Key& key) {
    return key.section() == text ||
           (key.has_star() && find_key(text + std::string(key.after_star())));
  });
}

// The known key nearest to an unknown one. The text comes from a file and may be long, and the
// distance takes quadratic time, so only its beginning is compared.
std::string nearest_key(const std::string& text) {
  std::vector<std::string> names;
  for (const Key& key : kKeys) {
    names.emplace_back(key.section());
    if (!key.has_star()) {
      names.emplace_back(key.name);
    } else if (const size_t point = text.rfind('.'); is_section(text.substr(0, point))) {
      names.push_back(text.substr(0, point) + std::string(key.after_star()));
      if (!find_key(names.back())) names.pop_back();  // of another section
    }
  }
  const std::string shown = text.substr(0, 100);
  return *std::ranges::min_element(
      names, {}, [&](const std::string& known) { return edit_distance(shown, known); });
}

}  // namespace slime::switchd
