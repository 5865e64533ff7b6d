// Settings that a program gives in one text, by the names of their fields.
#include <algorithm>

#include "base/text.h"
#include "settings/table.h"

namespace slime {

Result<Environment> with_options(Environment environment, std::string_view options) {
  while (!options.empty()) {
    const size_t length = std::min(options.find(';'), options.size());
    const std::string_view option = trimmed(options.substr(0, length));
    options.remove_prefix(std::min(length + 1, options.size()));
    if (option.empty()) continue;
    const size_t equals = option.find('=');
    const std::string_view name = trimmed(option.substr(0, equals));
    const auto* const spec = std::ranges::find(kSettingSpecs, name, &SettingSpec::field);
    if (equals == std::string_view::npos || spec == std::end(kSettingSpecs)) {
      return fail(Status::kConfig,
                  "the options have \"%s\", which is no setting; write \"ifname=eth0; "
                  "peer_timeout=5\", with names of settings in small letters, without NCCL_SLIME_",
                  displayed(option, 64).c_str());
    }
    environment[spec->name] = trimmed(option.substr(equals + 1));
  }
  return environment;
}

}  // namespace slime
