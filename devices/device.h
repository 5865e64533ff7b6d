// A device: a group of rails, with the memory registered on them. The plugin shows it to NCCL as
// one NIC.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/machine/cpu_set.h"
#include "devices/memory.h"
#include "transports/rail.h"

namespace slime {

inline constexpr uint32_t kMaxRails = 32;  // of a device, and so channels of one link

// Whether two rails belong to one port. "eth0.0" and "eth0.1" are sockets of one interface: they
// have the same NIC, port and address. Ports of one NIC are separate devices; NCCL may merge them.
// All four fields are compared, because virtual functions may all have the GUID 0, and on
// InfiniBand the same address.
inline bool same_port(const Rail& a, const Rail& b) {
  const RailCaps &one = a.caps(), &other = b.caps();
  return one.guid == other.guid && one.port == other.port && one.oob_address == other.oob_address &&
         one.pci_path == other.pci_path;
}

struct DeviceProperties {
  bool takes(MemoryKind kind) const { return (memory_kinds & static_cast<uint32_t>(kind)) != 0; }
  // Device memory is registered by its address or as a DMA-BUF.
  bool takes_device_memory() const { return takes(MemoryKind::kCuda) || dma_buf; }

  std::string name;      // stable and unique, e.g. "eth0" or "eth0+eth1"
  std::string reason;    // for people: why its NICs are together; empty: it has one only
  std::string pci_path;  // of the first rail; empty: virtual
  uint64_t guid = 0;
  int port = 0;
  uint64_t speed_mbps = 0;      // sum over the rails
  float latency_us = 0;         // of the slowest rail
  uint32_t memory_kinds = 0;    // kinds that all rails can register by address
  bool dma_buf = false;         // all rails take DMA-BUFs, which are device memory
  bool lines_in_order = false;  // RailCaps::lines_in_order of all rails: LL128 is safe
  CpuSet near;                  // the CPUs of its rails' NUMA nodes; empty: not known
  std::vector<int> members;     // devices that this one was merged from; else its own index
};

// A device never moves and lives as long as the Devices that it is of. Rails and properties never
// change; memory() has a mutex, and the other members are atomic. Any thread may call.
class Device {
 public:
  Device(std::vector<Rail*> rails, DeviceProperties properties)
      : rails_(std::move(rails)),
        properties_(std::move(properties)),
        memory_(rails_),
        outstanding_(rails_.size()) {}

  const DeviceProperties& properties() const { return properties_; }
  const std::vector<Rail*>& rails() const { return rails_; }
  MemoryCache& memory() { return memory_; }
  // True for the first caller for this rail, so that only one link warns of it.
  bool first_to_find_slow(size_t rail) {
    const uint64_t bit = uint64_t{1} << rail;
    return !(found_slow_.fetch_or(bit, std::memory_order_relaxed) & bit);
  }
  // The bytes that the links of several rails have outstanding on a rail. Each adds what it has
  // more or less than it added before (LinkRails::update_load), so the count may be some KiB off.
  uint64_t outstanding(size_t rail) const {
    return outstanding_[rail].bytes.load(std::memory_order_relaxed);
  }
  void add_outstanding(size_t rail, uint64_t more_or_less) {
    outstanding_[rail].bytes.fetch_add(more_or_less, std::memory_order_relaxed);
  }
  // A number for each link, by which the links of a device spread over its rails.
  size_t number_link() { return links_.fetch_add(1, std::memory_order_relaxed); }

 private:
  const std::vector<Rail*> rails_;
  const DeviceProperties properties_;
  MemoryCache memory_;
  std::atomic<uint64_t> found_slow_ = 0;  // a bit per rail
  std::atomic<size_t> links_ = 0;
  struct alignas(64) Outstanding {  // a cache line: threads change those of different rails
    std::atomic<uint64_t> bytes = 0;
  };
  std::vector<Outstanding> outstanding_;  // by rail
};

}  // namespace slime
