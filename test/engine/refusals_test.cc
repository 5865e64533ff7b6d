// A refused read or silent write of one stripe ends its transfer, and nothing else for long: on
// rails that go on, and on rails that die of it and return, as those of RDMA NICs. Transfers of
// many stripes, with a lifeline: lifeline/schedule_test.cc.
#include <gtest/gtest.h>

#include "test/support/kept_warnings.h"
#include "test/support/quiet_transfers.h"
#include "test/support/sim_hosts.h"
#include "test/support/transfer_end.h"

namespace slime::test {
namespace {

constexpr size_t kRails = 2;
constexpr double kRetry = 100;  // s, after a fault

RailCaps caps_of(bool goes_on) {
  RailCaps caps;
  caps.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
  caps.max_outstanding_reads = 4;
  caps.goes_on_after_refusal = goes_on;
  return caps;
}

Settings settings_of_refusals() {
  Settings settings;
  settings.rail_retry = kRetry;
  return settings;
}

// A link of two rails, whose active end moves quiet transfers, or its passive end.
struct Refusals {
  explicit Refusals(bool goes_on, bool by_active)
      : active(network, kRails, caps_of(goes_on), settings_of_refusals(), "a"),
        passive(network, kRails, caps_of(goes_on), settings_of_refusals(), "b"),
        quiet(by_active ? active.device() : passive.device(),
              by_active ? passive.device() : active.device()) {
    const LinkMemoryBytes memory = TransferEnd::memory_bytes(kRails);
    SimEnds made = connect(network, active, passive, kRails, {memory, memory});
    ends[0] =
        std::make_unique<TransferEnd>(*active.devices, active.device(), std::move(made.active));
    ends[1] =
        std::make_unique<TransferEnd>(*passive.devices, passive.device(), std::move(made.passive));
    quiet.serve(ends[by_active ? 0 : 1]->link());
  }
  ~Refusals() { quiet.end(); }

  bool until(const std::function<bool()>& condition, double seconds) {
    const uint64_t end_ns = network.now_ns() + seconds_to_ns(seconds);
    while (!condition() && network.now_ns() < end_ns) {
      for (const auto& end : ends) EXPECT_EQ(end->progress(), Status::kOk);
      EXPECT_EQ(quiet.progress(), "");
      if (!network.step()) network.advance(100'000);
    }
    return condition();
  }
  size_t up() const {
    return std::min(ends[0]->link().rails().up_count(), ends[1]->link().rails().up_count());
  }
  uint64_t rejoins() const { return ends[0]->link().rejoins(); }

  sim::Network network{5};
  SimHost active, passive;
  QuietTransfers quiet;
  std::array<std::unique_ptr<TransferEnd>, 2> ends;
};

TEST(Refusals, ARefusedTransferEndsAloneAndItsRailReturnsAtOnce) {
  for (const bool by_active : {true, false}) {
    for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
      for (const bool goes_on : {true, false}) {
        SCOPED_TRACE(testing::Message()
                     << by_active << " " << static_cast<int>(opcode) << " " << goes_on);
        const KeptWarnings warnings(by_active ? "rail a." : "rail b.");
        Refusals test(goes_on, by_active);
        (void)test.until([] { return false; }, 2);  // later than the least pause between tries
        ASSERT_EQ(test.up(), kRails);
        test.quiet.begin(0, opcode, 5000, 1, true);
        for (uint32_t slot = 1; slot < QuietTransfers::kSlots; ++slot) {
          test.quiet.begin(slot, slot % 2 == 0 ? Opcode::kRead : Opcode::kWrite, 9000, slot, false);
        }
        EXPECT_TRUE(test.until([&] { return test.quiet.all_idle(); }, 5));
        EXPECT_EQ(test.quiet.refused(), 1u);
        EXPECT_EQ(test.quiet.moved(), QuietTransfers::kSlots - 1);
        EXPECT_TRUE(test.until([&] { return test.up() == kRails; }, kRetry / 10));
        EXPECT_EQ(test.rejoins(), goes_on ? 0u : 1u) << "one rail was lost, and not the other";
        EXPECT_FALSE(test.quiet.written_late());
        EXPECT_EQ(warnings.lines(), std::vector<std::string>()) << "of the end that was refused";
      }
    }
  }
}

}  // namespace
}  // namespace slime::test
