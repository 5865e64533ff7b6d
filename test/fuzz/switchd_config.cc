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
  FUZZ_CHECK(config->shards >= 1 && config->shards <= sap::kMaxShards);
  FUZZ_CHECK(config->max_lanes >= 1 && config->max_lanes <= sap::kMaxLanes);
  FUZZ_CHECK(!config->program.empty() && config->device <= 7);
  FUZZ_CHECK(config->runtime.port() != 0);
  FUZZ_CHECK(config->slot_bytes > 0 && !config->data_listen.is_any());
  const std::string printed = print_config(values);
  const auto again = read_text(printed, &values_again);
  FUZZ_CHECK(again);
  FUZZ_CHECK(print_config(values_again) == printed);
  FUZZ_CHECK(again->key_file == config->key_file && again->slot_bytes == config->slot_bytes);
  FUZZ_CHECK(again->driver == config->driver && again->runtime == config->runtime &&
             again->program == config->program && again->device == config->device);
}

}  // namespace slime::switchd
