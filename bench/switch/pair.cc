#include <cstdio>

#include "bench/switch/rows.h"

namespace slime::bench {
namespace {

constexpr uint64_t kBufferBytes = 4 << 20;

bool failed(const Error& error) {
  std::fprintf(stderr, "bench-switch: %s\n", error.what.c_str());
  return false;
}

}  // namespace

bool open_pair(const Options& options, const Load& load, const Load& echo_load,
               uint32_t busy_poll_us, Pair* pair) {
  const SocketAddress local = SocketAddress::parse("127.0.0.1").value();
  auto soft = net::SoftSwitch::open({.address = local,
                                     .max_lanes = load.lanes,
                                     .socket_buffer_bytes = kBufferBytes,
                                     .busy_poll_us = busy_poll_us,
                                     .segmentation = options.segmentation});
  if (!soft) return failed(soft.error());
  pair->soft = std::move(*soft);
  const auto packet_bytes = static_cast<uint32_t>(sap::kHeaderBytes + 4 * load.lanes);
  pair->echo = Echo::start(local, packet_bytes, kBufferBytes, busy_poll_us);
  pair->to_switch = Children::open(load, local, kBufferBytes);
  pair->to_echo = Children::open(echo_load, local, kBufferBytes);
  if (!pair->echo || !pair->to_switch || !pair->to_echo) return false;
  net::JobSpec spec;
  spec.job = load.job;
  spec.generation = load.generation;
  spec.token = load.token;
  spec.slots = load.slots;
  spec.max_lanes = load.lanes;
  spec.children = pair->to_switch->addresses();
  if (auto added = pair->soft->add_job(spec); !added) return failed(added.error());
  return pair->to_switch->connect_to(pair->soft->shape().address) &&
         pair->to_echo->connect_to(pair->echo->address());
}

}  // namespace slime::bench
