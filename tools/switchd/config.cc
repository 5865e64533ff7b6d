#include "tools/switchd/config.h"

#include <string_view>

#include "base/text.h"

namespace slime::switchd {
namespace {

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
    if (is_control(c)) {  // a line end would be read as a space
      constexpr char kDigits[] = "0123456789abcdef";
      out += std::string("\\x") + kDigits[c >> 4] + kDigits[c & 15];
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

Error wrong_value(const std::string& name, const std::string& text, const Mismatch& accepted) {
  return make_error(Status::kConfig, 0, "%s: \"%s\" is not %s", name.c_str(), text.c_str(),
                    accepted.c_str());
}

// The control channel gives workers the data address. So every host that reaches the control
// channel must reach this address, too: packets to another host's loopback address end at the
// sender.
Result<void> settle_data_address(const Values& values, Config* config) {
  const SocketAddress& control = config->control.listen;
  SocketAddress& data = config->data.address;
  const bool follows = value_of(values, "data.listen", "").empty();
  if (follows) {
    data = control;
    data.set_port(control::kDefaultDataPort);
  }
  if (follows && control.is_any()) {
    return fail(Status::kConfig,
                "control.listen: \"%s\" is every address of this host, and workers are told one to "
                "send packets to; add data.listen, such as 10.0.0.1:%u",
                control.to_string().c_str(), control::kDefaultDataPort);
  }
  if (data.is_loopback() && !control.is_loopback()) {
    return fail(Status::kConfig,
                "data.listen: \"%s\" is reached from this host only, and workers of other hosts "
                "may connect to control.listen, %s; give data.listen an address that they reach, "
                "or leave it out: it is control's then",
                data.to_string().c_str(), control.to_string().c_str());
  }
  return {};
}

// What a switch in P4 needs and the software switch does not.
Result<void> check_device(const Values& values, const Config& config) {
  for (const auto& [address, host] : config.hosts) {
    if (!host.mac || !host.port) {
      return fail(Status::kConfig, "hosts.%s: mac and port are both needed", address.c_str());
    }
  }
  if (config.driver == Driver::kSoftware) return {};
  if (value_of(values, "data.listen", "").empty()) {
    return fail(Status::kConfig,
                "data.listen: a switch in P4 has an address of its own, which no host has; name "
                "it, such as 10.0.0.254:%u",
                control::kDefaultDataPort);
  }
  if (config.hosts.empty()) {
    return fail(Status::kConfig,
                "hosts: there are none, so the switch would forward nothing; name the workers' "
                "hosts and this one, such as 10.0.0.1: {mac: \"02:00:00:00:00:0a\", port: 1}");
  }
  return {};
}

// A section whose keys are names that the user gives.
void print_names(std::string_view section, const char* help, const Values& values,
                 std::string* out) {
  *out += std::string("\n# ") + help + "\n" + std::string(section) + ":\n";
  std::string last;
  for (const auto& [name, text] : values) {
    const auto found = find_key(name);
    if (!found || !found->key->has_star() || found->key->section() != section) continue;
    if (found->star != last) *out += "  " + found->star + ":\n";
    *out += "    " + std::string(found->key->after_star().substr(1)) + ": " + scalar(text) + "\n";
    last = found->star;
  }
}

}  // namespace

// Each key by itself first, in the order of the table, then all of them together.
Result<Config> make_config(const Values& values) {
  Config config;
  const auto take = [&](const FoundKey& found, const std::string& name, const std::string& text) {
    const Mismatch accepted = found.key->take(text, found.star, &config);
    return accepted.empty() ? Result<void>() : fail(wrong_value(name, text, accepted));
  };
  for (const Key& key : keys()) {
    if (key.has_star()) continue;
    const std::string name(key.name);
    if (auto taken = take({&key, ""}, name, value_of(values, name, key.value)); !taken) {
      return fail(std::move(taken.error()));
    }
  }
  for (const auto& [name, text] : values) {
    const auto found = find_key(name);
    if (!found || !found->key->has_star()) continue;
    if (auto taken = take(*found, name, text); !taken) return fail(std::move(taken.error()));
  }
  if (auto checked = check_device(values, config); !checked) return fail(checked.error());
  if (auto settled = settle_data_address(values, &config); !settled) return fail(settled.error());
  if (config.key_file.empty() && !config.tenant_keys.empty()) {
    return fail(wrong_value("control.tenant_keys", config.tenant_keys,
                            "of use without control.key_file, the operators' key"));
  }
  if (!config.controller.parent && !config.parent_key_file.empty()) {
    return fail(wrong_value("parent.key_file", config.parent_key_file,
                            "of use without parent.control, the parent's address"));
  }
  if (config.controller.parent == config.control.listen) {
    return fail(wrong_value("parent.control", config.control.listen.to_string(),
                            "another switch: this one listens there (control.listen)"));
  }
  return config;
}

std::string print_config(const Values& values) {
  std::string out = "# slime-switchd: every key, with its value.\n";
  std::string_view section;
  for (const Key& key : keys()) {
    const bool begins = key.section() != section;
    section = key.section();
    if (key.has_star()) {
      if (begins) print_names(section, key.help, values, &out);
      continue;
    }
    const std::string name(key.name), standard = *key.value == '\0' ? "none" : key.value;
    if (begins) out += "\n" + std::string(section) + ":\n";
    out += "  # " + std::string(key.help) + " (default: " + standard + ").\n";
    out += "  " + name.substr(section.size() + 1) + ": " +
           scalar(value_of(values, name, key.value)) + "\n";
  }
  return out;
}

}  // namespace slime::switchd
