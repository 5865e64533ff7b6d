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

const Key kKeys[] = {
    {"data.listen", "",
     "Where workers send packets: this host's address as they see it, and the UDP port of shard 0; "
     "empty: the address of control.listen, port 28880",
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
     "32-bit words per packet; 360 fit an Ethernet of 1500 bytes (352 over IPv6), 2048 one of 9000",
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

constexpr const char* kTenantKeys[] = {"max_jobs", "slot_memory"};
constexpr std::string_view kTenants = "tenants.";

// "tenants.NAME.KEY", and NAME may have points.
bool split_tenant(const std::string& name, std::string* tenant, std::string* key) {
  const size_t point = name.rfind('.');
  if (!name.starts_with(kTenants) || point <= kTenants.size()) return false;
  *tenant = name.substr(kTenants.size(), point - kTenants.size());
  *key = name.substr(point + 1);
  return control::is_tenant_name(*tenant);
}

Taken take_tenant(const std::string& tenant, const std::string& key, const std::string& text,
                  Config* config) {
  auto& quota = config->tenants.try_emplace(tenant, config->tenant_quota).first->second;
  return key == kTenantKeys[0] ? take_number(text, 0, UINT32_MAX, &quota.max_jobs)
                               : take_bytes(text, &quota.max_slot_bytes);
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

}  // namespace

bool is_key(const std::string& name) {
  std::string tenant, key;
  if (split_tenant(name, &tenant, &key)) return key == kTenantKeys[0] || key == kTenantKeys[1];
  return std::ranges::any_of(kKeys, [&](const Key& known) { return name == known.name; });
}

bool is_section(const std::string& name) {
  return name + "." == kTenants || (name.starts_with(kTenants) && is_key(name + ".max_jobs")) ||
         std::ranges::any_of(kKeys, [&](const Key& known) {
           return std::string_view(known.name).starts_with(name + ".");
         });
}

std::string nearest_key(const std::string& name) {
  std::string tenant, key;
  std::vector<std::string> names = {"tenants"};
  for (const Key& known : kKeys) {
    names.emplace_back(known.name);
    names.push_back(names.back().substr(0, names.back().find('.')));
  }
  if (split_tenant(name, &tenant, &key)) {
    names.clear();
    for (const char* known : kTenantKeys) {
      names.push_back(std::string(kTenants) + tenant + "." + known);
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
    std::string tenant, key;
    if (!split_tenant(name, &tenant, &key)) continue;
    if (auto accepted = take_tenant(tenant, key, text, &config); !accepted.empty()) {
      return fail(wrong_value(name, text, accepted));
    }
  }
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
  out += "\n# What tenants may have: {name: {max_jobs, slot_memory}}.\ntenants:\n";
  std::string last, tenant, key;
  for (const auto& [name, text] : values) {
    if (!split_tenant(name, &tenant, &key)) continue;
    if (tenant != last) out += "  " + tenant + ":\n";
    out += "    " + key + ": " + scalar(text) + "\n";
    last = tenant;
  }
  return out;
}

}  // namespace slime::switchd
