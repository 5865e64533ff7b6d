// A switch in P4 as a SwitchDriver. It fills the tables of a P4Program over a P4Runtime. Everything
// that depends on the program or the device is in these two.
//
// States: connected, or lost. When the connection ends, its jobs are lost, because the device may
// have been started again with empty tables, or may have a part of the last call. maintain()
// connects and programs it from nothing, and repeats that until it succeeds. The switch then
// refuses packets of lost jobs (no such job), and their workers ask for new jobs.
// Invariants: no two jobs that are not lost share an index, slots or multicast groups.
// Thread rules: one thread, that of a DeviceThread; shape(), name(), is_lost(), lost() and end_by()
// any. A call of the device blocks, at most until the runtime's deadline; an operation has many.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>

#include "switch/core/driver.h"
#include "switch/p4driver/p4_job.h"

namespace slime::net {

class P4Switch final : public SwitchDriver {
 public:
  static constexpr std::chrono::milliseconds kCheckEvery{500};
  // Of all calls of one operation together; to program the device is one.
  static constexpr std::chrono::nanoseconds kOperation{15 * times::kP4Call};

  // Checks the program's options, connects, and programs the device.
  static Result<std::unique_ptr<P4Switch>> open(std::unique_ptr<P4Runtime> runtime,
                                                std::unique_ptr<const P4Program> program);

  SwitchShape shape() const override { return shape_; }
  Result<void> add_job(const JobSpec& spec) override;
  Result<void> remove_job(uint16_t job) override;
  Result<void> fence(uint16_t job, uint8_t generation, uint32_t token) override;
  Result<JobTotals> totals(uint16_t job) const override;
  std::vector<DeviceCounter> counters() const override;
  // Reconnects to a device that was lost. Has something to do every kCheckEvery.
  void maintain();
  // See P4Runtime.
  void end_by(std::chrono::steady_clock::time_point time) { runtime_->end_by(time); }
  bool is_lost() const { return lost_; }
  Error lost() const;  // what a caller is told then
  std::string name() const;

 private:
  P4Switch(std::unique_ptr<P4Runtime> runtime, std::unique_ptr<const P4Program> program);
  void reprogram();
  Result<void> program();
  Result<void> check(const JobSpec& spec) const;
  Result<void> check_address(const JobSpec& spec, const char* who, const SocketAddress& end) const;
  Result<Placement> place(const JobSpec& spec) const;
  Error no_job(uint16_t job) const;

  const std::unique_ptr<P4Runtime> runtime_;
  const std::unique_ptr<const P4Program> program_;
  const SwitchShape shape_;
  std::map<uint16_t, P4Job> jobs_;
  std::atomic<bool> lost_ = false;
  std::string trouble_;  // why the last attempt to program it failed: the log has it once
  uint64_t restarts_ = 0;
  std::chrono::steady_clock::time_point next_check_{};
};

}  // namespace slime::net
