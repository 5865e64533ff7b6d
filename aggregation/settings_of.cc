#include "aggregation/settings_of.h"

#include <charconv>

#include "base/log.h"

namespace slime::aggregation {
namespace {

std::string text_of(double value) {
  char text[32];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 9);
  return error == std::errc{} ? std::string(text, end) : "?";
}

Environment stated(const Options& options) {
  Environment stated(options.settings.begin(), options.settings.end());
  const auto state = [&stated](const char* name, const std::string& text) {
    if (!text.empty()) stated[name] = text;
  };
  const auto state_seconds = [&stated](const char* name, double seconds) {
    if (seconds != 0) stated[name] = text_of(seconds);
  };
  state("NCCL_SLIME_SWITCH", options.switch_address);
  state("NCCL_SLIME_SWITCH_KEY_FILE", options.key_file);
  state("NCCL_SLIME_IFNAME", options.interfaces);
  if (options.slots != 0) state("NCCL_SLIME_SWITCH_SLOTS", std::to_string(options.slots));
  state_seconds("NCCL_SLIME_CONNECT_TIMEOUT", options.connect_timeout_s);
  state_seconds("NCCL_SLIME_SWITCH_TIMEOUT", options.switch_timeout_s);
  state_seconds("NCCL_SLIME_REQUEST_TIMEOUT", options.operation_timeout_s);
  return stated;
}

}  // namespace

Result<Settings> settings_of(const Options& options, const Environment& environment) {
  for (const auto& [name, value] : options.settings) {
    if (name.starts_with("NCCL_SLIME_")) continue;
    return fail(make_error(Status::kInvalid, 0,
                           "Options::settings: \"%s\" is no setting; their names begin with "
                           "NCCL_SLIME_",
                           name.c_str()));
  }
  Environment all = stated(options);
  std::vector<std::string> unknown;
  auto alone = parse_settings(all, &unknown);
  if (!alone) return alone;
  if (!unknown.empty()) {
    return fail(make_error(Status::kInvalid, 0, "Options::settings: %s", unknown.front().c_str()));
  }
  all.insert(environment.begin(), environment.end());  // what is there stays
  std::vector<std::string> warnings;
  auto settings = parse_settings(all, &warnings);
  for (const std::string& warning : warnings) SLIME_WARN("%s", warning.c_str());
  return settings;
}

}  // namespace slime::aggregation
