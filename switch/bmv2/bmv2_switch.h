// bmv2's simple_switch as a SwitchDriver: it runs switch/p4/v1model/switch.p4, and this class fills
// its tables over the runtime interface.
//
// States: connected, or lost. When the connection ends, simple_switch may have been started again
// with empty tables, and an entry that was being written may be half there: so its jobs are over.
// tend() connects and programs it from nothing, and repeats that until it succeeds. The switch then
// refuses packets of jobs that are over (no such job), and their workers ask for new jobs.
//
// Invariants: a job's ranges of registers and its multicast groups are its own. Its entry of the
// table of jobs is added last and removed first, so no packet finds a job that is not whole.
// Thread rules: the controller's thread; shape() any. Each call of bmv2 is waited for,
// Bmv2Options::call_ms at most.
#pragma once

#include <chrono>
#include <optional>

#include "switch/bmv2/program.h"
#include "switch/core/driver.h"

namespace slime::net {

struct Bmv2Options {
  SocketAddress runtime;  // Thrift server of simple_switch
  // Where workers send, IPv4; the port is that of shard 0. No host has it: the switch answers ARP
  // and ping for it.
  SocketAddress address;
  int call_ms = 2000;   // deadline of each call of bmv2
  uint64_t mac = 0;     // of the switch
  uint32_t shards = 1;  // ports from there on: a power of two up to sap::kMaxShards
  uint32_t max_lanes = p4::kLanes;
  uint32_t formats = sap::kKnownFormats;  // a bit each; sap::kWordFormats at least
  p4::Hosts hosts;                        // all that the switch forwards to
};

class Bmv2Switch final : public SwitchDriver {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{500};

  static Result<std::unique_ptr<Bmv2Switch>> open(Bmv2Options options);

  SwitchShape shape() const override { return shape_; }
  Result<void> add_job(const JobSpec& spec) override;
  Result<void> remove_job(uint16_t job) override;
  Result<void> fence(uint16_t job, uint8_t generation, uint32_t token) override;
  Result<JobTotals> totals(uint16_t job) const override;
  std::vector<DeviceCounter> counters() const override;
  int tend() override;

 private:
  struct Handle {
    const char* table;
    int32_t handle;
  };
  struct Job {
    JobSpec spec;
    p4::Layout layout;
    std::vector<Handle> entries;  // in the order in which they were added
    std::vector<int32_t> groups, replicas;
    std::optional<int32_t> entry;  // of the table of jobs
    bool over = false;             // bmv2 does not have it any more
  };

  explicit Bmv2Switch(Bmv2Options options);
  void begin_again();
  Result<void> program();
  Result<void> add_flooding();
  Result<void> check(const JobSpec& spec) const;
  Result<void> check_address(const JobSpec& spec, const char* who, const SocketAddress& end) const;
  Result<p4::Layout> place(const JobSpec& spec) const;
  size_t sources_used() const;
  Result<void> install(Job& job);
  Result<void> install_groups(Job& job);
  Result<void> clear(const p4::Layout& layout, uint32_t slots);
  Result<void> uninstall(Job& job);
  Error no_job(uint16_t job) const;

  const Bmv2Options options_;
  const SwitchShape shape_;
  mutable Bmv2Runtime runtime_;
  std::map<uint16_t, Job> jobs_;
  bool lost_ = false;
  std::string trouble_;  // why the last attempt to program it failed: the log has it once
  uint64_t restarts_ = 0;
  std::chrono::steady_clock::time_point look_at_{};
};

}  // namespace slime::net
