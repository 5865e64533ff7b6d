// The plain loop over one queue pair.
//
//   initiator                                target
//     RDMA WRITEs or READs, one doorbell -->   nothing: its NIC confirms or answers them
//     a message: WRITE WITH IMMEDIATE    -->   takes it
//                                       <--    WRITE WITH IMMEDIATE without bytes
//     the same with kEnd                 -->   serve() returns
#pragma once

#include "devices/devices.h"
#include "tools/perf/p2p/bare_end.h"
#include "tools/perf/p2p/plain.h"

namespace slime::perf::p2p {

class PlainVerbs final : public PlainLoop {
 public:
  // Over the first rail of the devices, which is one of verbs.
  static Result<std::unique_ptr<PlainLoop>> open(bool initiator, std::span<std::byte> memory,
                                                 std::unique_ptr<Devices> devices);
  PlainVerbs(std::unique_ptr<Devices> devices, std::unique_ptr<BareEnd> end,
             const Settings& settings, uint32_t most_a_post)
      : devices_(std::move(devices)),
        settings_(settings),
        most_a_post_(most_a_post),
        end_(std::move(end)) {}

  nlohmann::json name() const override;
  Result<void> connect(const nlohmann::json& other) override;
  std::span<const uint64_t> ways() const override;
  Requests requests(const Layout& layout, Operation operation, uint64_t most_a_work) override;
  Result<void> end(Operation operation) override;
  Result<void> serve(const Layout& layout, Operation operation) override;

 private:
  struct Part {
    uint64_t offset;
    uint32_t bytes;
  };
  Result<void> begin(const std::vector<Part>& parts, ibv_wr_opcode opcode, uint32_t slot);
  Result<void> tell(uint32_t immediate, uint32_t times);
  Result<void> look();
  template <typename Condition>
  Result<void> wait_until(Condition condition);

  const std::unique_ptr<Devices> devices_;  // the rail's device is open as long as they are
  const Settings settings_;
  const uint32_t most_a_post_;  // works
  const std::unique_ptr<BareEnd> end_;
  std::vector<uint64_t> posted_, answer_;     // of each slot: works; the number of its answer
  uint64_t told_ = 0, heard_ = 0, ends_ = 0;  // messages; those that have arrived; those of kEnd
};

}  // namespace slime::perf::p2p
