// The plain loop over one queue pair.
//
//   initiator                                target
//     RDMA WRITEs or READs, one doorbell -->   nothing: its NIC confirms or answers them
//     the same, the last one WITH
//     IMMEDIATE: it tells the target     -->   takes that
//                                       <--    WRITE WITH IMMEDIATE without bytes
//     kEnd                               -->   serve() returns
#pragma once

#include "devices/devices.h"
#include "tools/perf/p2p/bare_end.h"
#include "tools/perf/p2p/plain.h"

namespace slime::perf::p2p {

class PlainVerbs final : public PlainLoop {
 public:
  // Over the first rail of the devices, which is one of verbs.
  static Result<std::unique_ptr<PlainLoop>> open(const Options& options,
                                                 std::span<std::byte> memory,
                                                 std::unique_ptr<Devices> devices);

  nlohmann::json name() const override;
  std::span<const uint64_t> ways() const override;
  Requests requests(const Layout& layout, uint64_t most_a_work) override;
  Result<void> end() override;
  Result<void> serve() override;

 private:
  PlainVerbs(const Options& options, std::unique_ptr<Devices> devices, std::unique_ptr<BareEnd> end,
             const RailCaps& caps);
  Result<void> connect_to(const nlohmann::json& other) override;
  Result<void> begin(const Layout& layout, uint64_t most_a_work, uint32_t slot);
  Result<void> tell(uint32_t immediate, uint64_t times);
  Result<void> make_room(size_t works);
  Result<size_t> look();
  template <typename Condition>
  Result<void> wait_until(Condition condition);

  const ibv_wr_opcode opcode_;  // of pieces
  const bool tells_;            // the target, which answers
  const uint32_t most_a_post_;  // works
  const std::vector<uint64_t> ways_;
  const std::unique_ptr<Devices> devices_;  // they have the rail, which outlives its end
  const std::unique_ptr<BareEnd> end_;
  std::vector<uint64_t> posted_, answer_;     // of each slot: works; the number of its answer
  uint64_t told_ = 0, heard_ = 0, ends_ = 0;  // messages; those that have arrived; those of kEnd
};

}  // namespace slime::perf::p2p
