// The software switch: a SwitchDriver whose data path is this process, a thread and a UDP socket
// per shard.
//
//     controller ── add_job, remove_job, fence ──▶ ShardThread 0..n-1
//     workers  ══ UDP ══▶ ReceiveBatch ─▶ Shard::handle ─▶ SendBatch ══ UDP ══▶ workers, parent
//
// In a tree of switches all have the same number of shards: slots, and so packets, of shard i go
// from port i of one to port i of the other.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "switch/core/driver.h"
#include "switch/softswitch/shard_thread.h"

namespace slime::net {

struct SoftSwitchOptions {
  // One address of this host, the one that workers send to: answers come from it. The port is that
  // of shard 0, and port 0 any block of free ports.
  SocketAddress address;
  uint32_t shards = 1;                      // up to sap::kMaxShards
  uint32_t max_lanes = sap::kMaxLanes;      // 32-bit words per packet
  uint32_t formats = sap::kKnownFormats;    // a bit each; sap::kWordFormats at least
  uint64_t slot_bytes = uint64_t{1} << 30;  // memory for slots, all jobs together
  uint64_t socket_buffer_bytes = 4 << 20;   // each way and shard; net.core.{r,w}mem_max limit it
  uint32_t busy_poll_us = 0;  // before a thread sleeps; spends that much processor for latency
  bool segmentation = true;   // see SendBatch; off: every packet alone
};

// States: its threads run from open() to the destructor.
// Invariants: a job is in all shards or in none, unless a shard's thread does not react. Then
// add_job() and remove_job() fail, and remove_job() may be repeated. used_bytes_ is the sum of
// jobs_, and never above shape_.slot_bytes.
// Thread rules: the controller's thread; counters, cpu_ns() and shape() any.
class SoftSwitch final : public SwitchDriver {
 public:
  static Result<std::unique_ptr<SoftSwitch>> open(const SoftSwitchOptions& options);
  ~SoftSwitch() override;  // stops and joins the threads

  SwitchShape shape() const override { return shape_; }
  // Addresses of switches, children or parent, are those of their shard 0. Replaces a job of the
  // same number.
  Result<void> add_job(const JobSpec& spec) override;
  Result<void> remove_job(uint16_t job) override;
  Result<void> fence(uint16_t job, uint8_t generation, uint32_t token) override;
  Result<JobTotals> totals(uint16_t job) const override;
  std::vector<DeviceCounter> counters() const override;  // all shards together

  uint64_t slot_bytes_used() const { return used_bytes_; }
  const IoCounters& io(uint32_t shard) const { return threads_[shard]->io(); }
  IoTotals io_totals() const;
  const ShardCounters& shard_counters(uint32_t shard) const {
    return threads_[shard]->shard().counters();
  }
  uint64_t cpu_ns(uint32_t shard) const { return threads_[shard]->cpu_ns(); }

 private:
  SoftSwitch() = default;
  Result<void> check(const JobSpec& spec) const;
  Result<uint64_t> reserve(const JobSpec& spec) const;
  JobSpec spec_of_shard(const JobSpec& spec, uint32_t shard) const;
  Error no_job(uint16_t job) const;

  SwitchShape shape_;
  std::vector<std::unique_ptr<ShardThread>> threads_;
  std::map<uint16_t, uint64_t> jobs_;  // and the bytes of their slots
  uint64_t used_bytes_ = 0;
};

}  // namespace slime::net
