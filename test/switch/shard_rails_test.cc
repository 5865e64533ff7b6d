// Children with several addresses: which counts for a slot, and where its results go.
#include <gtest/gtest.h>

#include "switch/core/shard.h"

namespace slime::net {
namespace {

constexpr uint32_t kShards = 2, kRails = 3;
constexpr uint16_t kSlots = 12;  // of which shard 1 has 1, 3, 5, ...: rails 0, 1, 2, 0, ...

SocketAddress address(uint32_t rail, uint32_t child) {
  return SocketAddress::parse("10." + std::to_string(rail) + ".0." + std::to_string(child + 1) +
                              ":1000")
      .value();
}

struct Sent {
  sap::Type type;
  std::vector<SocketAddress> to;
};

class Recorder final : public Outbox {
 public:
  void send(const Outgoing& packet, std::span<const SocketAddress> to) override {
    sent.push_back({static_cast<sap::Type>(packet.header[sap::at::kType]), {to.begin(), to.end()}});
  }
  std::vector<Sent> sent;
};

class ShardRails : public testing::Test {
 protected:
  Shard shard_{1, kShards};
  Recorder out_;

  static JobSpec spec() {
    JobSpec spec;
    spec.job = 7;
    spec.generation = 5;
    spec.slots = kSlots;
    spec.max_lanes = 8;
    spec.rails = kRails;
    for (uint32_t rail = 0; rail < kRails; ++rail) {
      for (uint32_t child : {0, 1}) spec.children.push_back(address(rail, child));
    }
    return spec;
  }
  void SetUp() override { ASSERT_TRUE(shard_.add_job(spec())); }

  void take(uint16_t slot, uint8_t child, const SocketAddress& from,
            sap::Type type = sap::Type::kContribution) {
    const sap::Header header{.type = type,
                             .job = 7,
                             .generation = 5,
                             .child = child,
                             .slot = slot,
                             .lanes = uint16_t(type == sap::Type::kQuery ? 0 : 1),
                             .epoch = 1};
    std::vector<std::byte> bytes(sap::kHeaderBytes + 4 * header.lanes);
    sap::encode(header, bytes.data());
    shard_.handle(bytes, from, 1, out_);
  }
};

TEST_F(ShardRails, AChildCountsFromTheRailOfTheSlotOnly) {
  for (uint16_t slot = 1; slot < kSlots; slot += kShards) {
    for (uint32_t rail = 0; rail < kRails; ++rail) {
      out_.sent.clear();
      take(slot, 1, address(rail, 1), sap::Type::kQuery);
      ASSERT_EQ(out_.sent.size(), 1u);
      const bool own = rail == slot / kShards % kRails;
      EXPECT_EQ(out_.sent[0].type, own ? sap::Type::kStatus : sap::Type::kReject)
          << "slot " << slot << " rail " << rail;
      EXPECT_EQ(out_.sent[0].to, std::vector{address(rail, 1)});
    }
  }
}

TEST_F(ShardRails, ResultsGoToTheRailOfTheSlot) {
  for (uint16_t slot = 1; slot < kSlots; slot += kShards) {
    const uint32_t rail = slot / kShards % kRails;
    out_.sent.clear();
    take(slot, 0, address(rail, 0));
    take(slot, 1, address(rail, 1));
    take(slot, 0, address(rail, 0));
    ASSERT_EQ(out_.sent.size(), 2u);
    EXPECT_EQ(out_.sent[0].to, (std::vector{address(rail, 0), address(rail, 1)}));
    EXPECT_EQ(out_.sent[1].to, std::vector{address(rail, 0)}) << "again to who asks";
  }
}

// Two children, not six: their further addresses are nobody.
TEST_F(ShardRails, AddressesAreNoChildren) {
  take(1, 2, address(1, 0));
  ASSERT_EQ(out_.sent.size(), 1u);
  EXPECT_EQ(out_.sent[0].type, sap::Type::kReject);
  EXPECT_EQ(shard_.counters_of(7)->rejected_source.get(), 1u);
}

TEST_F(ShardRails, RefusesJobsThatCannotBe) {
  const auto refused = [](auto change) {
    JobSpec job = spec();
    change(job);
    return !Shard(0, 1).add_job(job);
  };
  EXPECT_FALSE(refused([](JobSpec&) {}));
  EXPECT_TRUE(refused([](JobSpec& job) { job.rails = 0; }));
  EXPECT_TRUE(refused([](JobSpec& job) { job.rails = 4; })) << "6 addresses on 4 rails";
  EXPECT_TRUE(refused([](JobSpec& job) { job.children.resize(9 * 2), job.rails = 9; }));
  EXPECT_TRUE(refused([](JobSpec& job) { job.children_are_switches = true; }));
  EXPECT_FALSE(refused([](JobSpec& job) { job.children.resize(8 * 32), job.rails = 8; }));
  EXPECT_TRUE(refused([](JobSpec& job) { job.children.resize(8 * 33), job.rails = 8; }));
}

}  // namespace
}  // namespace slime::net
