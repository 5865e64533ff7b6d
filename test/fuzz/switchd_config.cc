// The daemon's configuration file: any bytes give a configuration or one sentence with file and
// line, and what --print-config prints is read back as the same configuration.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/fuzz/support/target.h"
#include "tools/switchd/config.h"

namespace slime::switchd {

static Result<Config> read_text(const std::string& text, Values* values) {
  const Fd file(::memfd_create("config", MFD_CLOEXEC));
  FUZZ_CHECK(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return read_config("/proc/self/fd/" + std::to_string(file.get()), values);
}

SLIME_FUZZ_TARGET(switchd_config, input) {
  Values values, values_again;
  const auto config = read_text(fuzz::text_of(input.rest()), &values);
  if (!config) {
    FUZZ_CHECK(config.error().status == Status::kConfig);
    FUZZ_CHECK(config.error().what.starts_with("/proc/self/fd/"));
    return;
  }
  FUZZ_CHECK(config->data.shards >= 1 && config->data.shards <= sap::kMaxShards);
  FUZZ_CHECK(config->data.max_lanes >= 1 && config->data.max_lanes <= sap::kMaxLanes);
  FUZZ_CHECK(!config->p4.program.empty() && config->p4.device <= 7);
  FUZZ_CHECK(config->p4.runtime.port() != 0);
  FUZZ_CHECK(config->data.slot_bytes > 0 && !config->data.address.is_any());
  const std::string printed = print_config(values);
  const auto again = read_text(printed, &values_again);
  FUZZ_CHECK(again);
  FUZZ_CHECK(print_config(values_again) == printed);
  FUZZ_CHECK(again->key_file == config->key_file &&
             again->data.slot_bytes == config->data.slot_bytes);
  FUZZ_CHECK(again->driver == config->driver && again->p4.runtime == config->p4.runtime &&
             again->p4.program == config->p4.program && again->p4.device == config->p4.device);
}

}  // namespace slime::switchd
