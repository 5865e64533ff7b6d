// Two ends of a link over simulated rails, without a control connection: what the engine tests
// drive in virtual time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "link/setup/handshake_end.h"
#include "message/recv_comm.h"
#include "message/send_comm.h"
#include "test/support/link_parts_of.h"
#include "test/support/pairs_in_order.h"
#include "test/support/sim/sim_rail.h"

namespace slime::test {

// One host: a device with simulated rails. Each is of a NIC of its own if `caps` has a guid (and
// the settings join NICs), else they share one.
struct SimHost {
  SimHost(sim::Network& network, size_t rail_count, const RailCaps& caps, const Settings& settings,
          const std::string& name) {
    std::vector<std::unique_ptr<Rail>> owned;
    for (size_t i = 0; i < rail_count; ++i) {
      RailCaps own = caps;
      own.name = name + "." + std::to_string(i);
      if (caps.guid != 0) own.guid = caps.guid + i;
      auto rail = network.open_rail(own, sim::RailModel());
      rails.push_back(static_cast<sim::Rail*>(rail.get()));
      owned.push_back(std::move(rail));
    }
    devices = Devices::of_rails(std::move(owned), settings, network);
  }

  Device& device() const { return *devices->device(0); }

  std::vector<sim::Rail*> rails;
  std::unique_ptr<Devices> devices;
};

// Rails that write into device memory, as a NIC with GPUDirect.
inline RailCaps device_memory_caps() {
  RailCaps caps;
  caps.transport = "sim";
  caps.arrives_unpolled = caps.confirms_in_hardware = true;
  caps.memory_kinds |= static_cast<uint32_t>(MemoryKind::kCuda);
  return caps;
}

// What arrives in this host's device memory is kept back until it is flushed.
inline void require_flushes(const SimHost& host) {
  sim::RailModel model;
  model.needs_flush = true;
  for (sim::Rail* rail : host.rails) rail->configure(rail->caps(), model);
}

struct SimLink {
  std::unique_ptr<SendCommImpl> sender;
  std::unique_ptr<RecvCommImpl> receiver;
};

// Aborts the test program when the simulated rails do not connect: then nothing else is testable.
inline SimLink connect(sim::Network& network, SimHost& from, SimHost& to, uint32_t channels,
                       uint32_t eager_max) {
  const auto must = [](auto result) {
    if (!result) std::abort();
    return std::move(*result);
  };
  RegisteredBuffer send_inbox =
      must(RegisteredBuffer::make(from.device(), cts_memory_bytes(channels)));
  RegisteredBuffer send_outbox =
      must(RegisteredBuffer::make(from.device(), eager_memory_bytes(eager_max, channels)));
  RegisteredBuffer recv_inbox =
      must(RegisteredBuffer::make(to.device(), eager_memory_bytes(eager_max, channels)));
  RegisteredBuffer recv_outbox =
      must(RegisteredBuffer::make(to.device(), cts_memory_bytes(channels)));
  const auto pairs = pairs_in_order(channels, from.device(), to.device());
  ChannelSet active(from.device(), pairs, true), passive(to.device(), pairs, false);
  Side active_side, passive_side;
  if (!active.open(send_inbox, &active_side) || !passive.open(recv_inbox, &passive_side)) {
    std::abort();
  }
  for (int i = 0;; ++i) {
    const Status a = active.connect(passive_side, 0, UINT64_MAX),
                 p = passive.connect(active_side, 0, UINT64_MAX);
    if (a == Status::kOk && p == Status::kOk) break;
    if (i == 1000) std::abort();
    network.advance(1000);
  }
  SimLink link;
  link.sender = std::make_unique<SendCommImpl>(
      *from.devices, from.device(),
      link_parts_of(active.take(), true, eager_max, "receiver", passive_side, std::move(send_inbox),
                    std::move(send_outbox)));
  link.receiver = std::make_unique<RecvCommImpl>(
      *to.devices, to.device(),
      link_parts_of(passive.take(), false, eager_max, "sender", active_side, std::move(recv_inbox),
                    std::move(recv_outbox)));
  return link;
}

}  // namespace slime::test
