#include "tools/switchd/config.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/edit_distance.h"
#include "tools/common/bytes.h"

namespace slime::switchd {
namespace {

using Taken = std::string;  // what is accepted, where the value is not; empty: it was taken

struct Key {
  const char* name;
  const char* value;  // the default
  const char* help;
  Taken (*take)(const std::string& text, Config* config);
};

template <typename Number>
Taken take_number(const std::string& text, uint64_t least, uint64_t most, Number* to) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < least || value > most) {
    return "a number from " + std::to_string(least) + " to " + std::to_string(most);
  }
  *to = static_cast<Number>(value);
  return {};
}

Taken take_bytes(const std::string& text, uint64_t* to) {
  const auto bytes = tools::parse_bytes(text);
  if (!bytes || *bytes == 0) return "a number of bytes, such as 64M";
  *to = *bytes;
  return {};
}

Taken take_address(const std::string& text, SocketAddress* to) {
  const auto address = SocketAddress::parse(text);
  if (!address) return "a numeric address with a port, such as 10.0.0.1:28880";
  *to = *address;
  return {};
}

Taken take_flag(const std::string& text, bool* to) {
  *to = text == "true";
  return text == "true" || text == "false" ? "" : "true or false";
}

// Six bytes in hexadecimal, as ip-link(8) prints them.
Taken take_mac(const std::string& text, uint64_t* to) {
  const Taken accepted = "the MAC of one host, such as 02:00:00:00:00:01";
  if (text.size() != 17) return accepted;
  *to = 0;
  for (size_t at = 0; at < text.size(); at += 3) {
    unsigned byte = 0;
    const char* end = text.data() + at + 2;
    const auto [stop, error] = std::from_chars(text.data() + at, end, byte, 16);
    if (error != std::errc{} || stop != end || (at + 2 < text.size() && *end != ':')) {
      return accepted;
    }
    *to = *to << 8 | byte;
  }
  // The lowest bit of the first byte marks an address of many hosts (IEEE 802).
  return *to == 0 || (*to >> 40 & 1) != 0 ? accepted : "";
}

const Key kKeys[] = {
    {"device.driver", "software",
     "What adds up: software (this program), or bmv2 (a simple_switch that runs "
     "switch/p4/v1model/switch.p4)",
     [](const std::string& text, Config* c) -> Taken {
       c->driver = text == "bmv2" ? Driver::kBmv2 : Driver::kSoftware;
       return text == "bmv2" || text == "software" ? "" : "software or bmv2";
     }},
    {"device.runtime", "127.0.0.1:9090",
     "With bmv2: its runtime interface (simple_switch --thrift-port)",
     [](const std::string& text, Config* c) -> Taken {
       SocketAddress address;
       c->runtime = text;
       if (auto wrong = take_address(text, &address); !wrong.empty()) return wrong;
       return address.is_any() || address.port() == 0 ? "one address with a port" : "";
     }},
    {"device.mac", "02:00:00:00:00:01",
     "With bmv2: the MAC that the switch has at the address of data.listen",
     [](const std::string& text, Config* c) { return take_mac(text, &c->mac); }},
    {"data.listen", "",
     "Where workers send packets: this host's address as they see it, and the UDP port of shard 0; "
     "empty: the address of control.listen, port 28880. With bmv2: an address that no host has",
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
     "9000; "
     "bmv2 takes 64 at most",
     [](const std::string& text, Config* c) {
       return take_number(text, 1, sap::kMaxLanes, &c->max_lanes);
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
       SocketAddress address;
       c->parent_control = text;
       if (text.empty()) return "";
       if (auto wrong = take_address(text, &address); !wrong.empty()) return wrong;
       return address.is_any() || address.port() == 0 ? "one address with a port" : "";
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

// A section whose keys are names that the user gives, with two keys below each.
struct NamedSection {
  std::string_view name;  // with the point
  const char* keys[2];
  const char* help;
  bool (*is_name)(std::string_view name);
  Taken (*take)(const std::string& name, bool first_key, const std::string& text, Config* config);
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
     "With bmv2: the hosts that it forwards to, and the port of each. {address: {mac, port}}.",
     is_ipv4_host,
     take_host},
    {"tenants.",
     {"max_jobs", "slot_memory"},
     "What tenants may have: {name: {max_jobs, slot_memory}}.",
     [](std::string_view name) { return control::is_tenant_name(std::string(name)); },
     take_tenant},
};

// A key of such a section, "tenants.NAME.KEY"; NAME may have points.
struct NamedKey {
  const NamedSection* section;
  std::string name, key;
  bool is_first() const { return key == section->keys[0]; }
  bool is_known() const { return is_first() || key == section->keys[1]; }
};

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

std::string value_of(const Values& values, const std::string& name, const char* otherwise) {
  const auto at = values.find(name);
  return at == values.end() ? otherwise : at->second;
}

// A plain scalar where that is safe, else a double-quoted one (YAML 1.2, 7.3.1 and 7.3.3).
std::string scalar(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_:";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos && text.back() != ':') {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {  // a line end would be read as a space
      constexpr char kDigits[] = "0123456789abcdef";
      out += std::string("\\x") + kDigits[c >> 4] + kDigits[c & 15];
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

Error wrong_value(const std::string& name, const std::string& text, const Taken& accepted) {
  return make_error(Status::kConfig, 0, "%s: \"%s\" is not %s", name.c_str(), text.c_str(),
                    accepted.c_str());
}

// Workers are told the data address over the control channel, so whoever reaches that must reach
// this: packets to another host's loopback address end at the sender.
Result<void> settle_data_address(const Values& values, Config* config) {
  const SocketAddress& control = config->control_listen;
  const bool follows = value_of(values, "data.listen", "").empty();
  if (follows) {
    config->data_listen = control;
    config->data_listen.set_port(control::kDefaultDataPort);
  }
  const std::string data = config->data_listen.to_string();
  if (follows && control.is_any()) {
    return fail(make_error(Status::kConfig, 0,
                           "control.listen: \"%s\" is every address of this host, and workers are "
                           "told one to send packets to; add data.listen, such as 10.0.0.1:%u",
                           control.to_string().c_str(), control::kDefaultDataPort));
  }
  if (config->data_listen.is_loopback() && !control.is_loopback()) {
    return fail(make_error(Status::kConfig, 0,
                           "data.listen: \"%s\" is reached from this host only, and workers of "
                           "other hosts may connect to control.listen, %s; give data.listen an "
                           "address that they reach, or leave it out: it is control's then",
                           data.c_str(), control.to_string().c_str()));
  }
  return {};
}

Result<void> check_device(const Values& values, const Config& config) {
  for (const auto& [address, host] : config.hosts) {
    if (!host.mac || !host.port) {
      return fail(make_error(Status::kConfig, 0, "hosts.%s: mac and port are both needed",
                             address.c_str()));
    }
  }
  if (config.driver == Driver::kSoftware) return {};
  if (value_of(values, "data.listen", "").empty()) {
    return fail(make_error(Status::kConfig, 0,
                           "data.listen: a switch in P4 has an address of its own, which no host "
                           "has; name it, such as 10.0.0.254:%u",
                           control::kDefaultDataPort));
  }
  if (config.hosts.empty()) {
    return fail(make_error(Status::kConfig, 0,
                           "hosts: there are none, so the switch would forward nothing; name the "
                           "workers' hosts and this one, such as "
                           "10.0.0.1: {mac: \"02:00:00:00:00:0a\", port: 1}"));
  }
  return {};
}

}  // namespace

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

Result<Config> make_config(const Values& values) {
  Config config;
  for (const Key& key : kKeys) {
    const std::string text = value_of(values, key.name, key.value);
    if (auto accepted = key.take(text, &config); !accepted.empty()) {
      return fail(wrong_value(key.name, text, accepted));
    }
  }
  for (const auto& [name, text] : values) {
    const auto named = named_key(name);
    if (!named) continue;
    auto accepted = named->section->take(named->name, named->is_first(), text, &config);
    if (!accepted.empty()) return fail(wrong_value(name, text, accepted));
  }
  if (auto checked = check_device(values, config); !checked) return fail(checked.error());
  if (auto settled = settle_data_address(values, &config); !settled) return fail(settled.error());
  if (config.key_file.empty() && !config.tenant_keys.empty()) {
    return fail(wrong_value("control.tenant_keys", config.tenant_keys,
                            "of use without control.key_file, the operators' key"));
  }
  if (config.parent_control.empty() && !config.parent_key_file.empty()) {
    return fail(wrong_value("parent.key_file", config.parent_key_file,
                            "of use without parent.control, the parent's address"));
  }
  if (config.parent_control == config.control_listen.to_string()) {
    return fail(wrong_value("parent.control", config.parent_control,
                            "another switch: this one listens there (control.listen)"));
  }
  return config;
}

std::string print_config(const Values& values) {
  std::string out = "# slime-switchd: every key, with its value.\n", section;
  for (const Key& key : kKeys) {
    const std::string name = key.name;
    const size_t point = name.find('.');
    if (name.substr(0, point) != section) {
      section = name.substr(0, point);
      out += "\n" + section + ":\n";
    }
    const std::string standard = *key.value == '\0' ? "none" : key.value;
    out += "  # " + std::string(key.help) + " (default: " + standard + ").\n";
    out += "  " + name.substr(point + 1) + ": " + scalar(value_of(values, name, key.value)) + "\n";
  }
  for (const NamedSection& one : kNamed) {
    out += std::string("\n# ") + one.help + "\n" + std::string(one.name);
    out.back() = ':';
    out += "\n";
    std::string last;
    for (const auto& [name, text] : values) {
      const auto named = named_key(name);
      if (!named || named->section != &one) continue;
      if (named->name != last) out += "  " + named->name + ":\n";
      out += "    " + named->key + ": " + scalar(text) + "\n";
      last = named->name;
    }
  }
  return out;
}

}  // namespace slime::switchd
