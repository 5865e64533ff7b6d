#include "tools/switchd/make_driver.h"

#include "switch/softswitch/softswitch.h"

namespace slime::switchd {

Result<std::unique_ptr<net::SwitchDriver>> make_driver(const Config& config) {
  net::SoftSwitchOptions options;
  options.address = config.data_listen;
  options.shards = config.shards;
  options.max_lanes = config.max_lanes;
  options.slot_bytes = config.slot_bytes;
  options.socket_buffer_bytes = config.socket_buffer_bytes;
  options.busy_poll_us = config.busy_poll_us;
  auto opened = net::SoftSwitch::open(options);
  if (!opened) return fail(std::move(opened.error()));
  return std::unique_ptr<net::SwitchDriver>(std::move(*opened));
}

}  // namespace slime::switchd
