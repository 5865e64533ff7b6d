// P4Switch over a device and a program that are not bmv2's: the generation and the token of a job
// are parts of keys, as in a chip that compares them in tables, and no registers are cleared.
#include "switch/p4driver/p4_switch.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace slime::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SocketAddress at(const char* text) { return *SocketAddress::parse(text); }

// What the device has, and what was asked of it. It refuses the call that `refuse` names.
struct Device {
  std::vector<TableEntry> entries;
  std::vector<uint16_t> groups;
  std::vector<std::string> calls;
  std::string refuse;

  Result<void> call(const std::string& what) {
    calls.push_back(what);
    if (what == refuse) return fail(make_error(Status::kRemote, 0, "refused: %s", what.c_str()));
    return {};
  }
};

class RecordingRuntime final : public P4Runtime {
 public:
  explicit RecordingRuntime(Device& device) : device_(device) {}
  const SocketAddress& server() const override { return server_; }
  Result<void> connect() override { return {}; }
  bool is_connected() const override { return true; }
  Result<void> reset() override { return {}; }
  Result<void> add(const TableEntry& entry) override {
    auto done = device_.call("add " + std::string(entry.table));
    if (done) device_.entries.push_back(entry);
    return done;
  }
  Result<void> modify(const TableEntry& entry) override {
    return device_.call("modify " + std::string(entry.table));
  }
  Result<void> remove(const TableEntry& entry) override {
    auto done = device_.call("remove " + std::string(entry.table));
    if (!done) return done;
    const auto same = [&](const TableEntry& other) { return same_key(other, entry); };
    if (std::erase_if(device_.entries, same) == 1) return {};
    return fail(make_error(Status::kInternal, 0, "no such entry"));
  }
  Result<void> set_default(std::string_view, const TableAction&) override { return {}; }
  Result<void> clear_registers(const RegisterRange&) override { return device_.call("clear"); }
  Result<uint64_t> read_counter(const CounterCell& cell) override {
    return cell.array == "rounds" ? 1000u + cell.index : cell.index;
  }
  Result<void> clear_counter(const CounterCell&) override { return {}; }
  Result<void> limit(std::string_view, uint32_t) override { return {}; }
  // What fails is there nevertheless, in part.
  Result<void> add_group(const MulticastGroup& group) override {
    device_.groups.push_back(group.id);
    return device_.call("group");
  }
  Result<void> remove_group(uint16_t id) override {
    std::erase(device_.groups, id);
    return {};
  }
  Result<void> mirror(const MirrorSession&) override { return {}; }

 private:
  const SocketAddress server_ = at("192.0.2.1:50052");
  Device& device_;
};

constexpr P4Traits kTraits{.device = "chip",
                           .process = "chipd",
                           .lanes = 32,
                           .formats = sap::kWordFormats,
                           .shards = 1,
                           .slots = 64,
                           .jobs = 3,
                           .sources = 12,
                           .hosts = 8,
                           .ports = 8,
                           .reject_meter = "rejects"};

class ChipProgram final : public P4Program {
 public:
  explicit ChipProgram(P4Options options) : P4Program(kTraits, std::move(options)) {}
  std::vector<TableEntry> device_entries() const override { return {}; }
  Flooding flooding() const override { return {{.id = 1}, "bridge", {"flood", {}}}; }
  CounterCell device_counter(uint32_t number) const override { return {"device", number}; }
  std::string refusal_of(const JobSpec&) const override { return ""; }
  std::vector<TableEntry> job_entries(const JobSpec& spec, const Placement&) const override {
    const TableField job{"job", 16, spec.job}, generation{"generation", 8, spec.generation};
    return {{"sources", {job, {"slot", 16, 0, 1}}, {"bound", {}}},
            {"jobs", {job}, {"known", {}}},
            {"generations", {job, generation}, {"current", {}}},
            {"members", {job, generation, {"token", 32, spec.token}}, {"take", {}}}};
  }
  std::vector<MulticastGroup> job_groups(const JobSpec&, const Placement& place) const override {
    return {{.id = static_cast<uint16_t>(2 + place.index)}};
  }
  std::vector<RegisterRange> job_registers(const JobSpec&, const Placement&) const override {
    return {};
  }
  std::vector<CounterCell> job_counters(const Placement&) const override {
    std::vector<CounterCell> cells;
    for (uint32_t i = 0; i < 16; ++i) cells.push_back({i == 1 ? "rounds" : "jobs", i});
    return cells;
  }
};

P4Options options() {
  P4Options options;
  options.address = at("10.0.0.254:28880");
  options.hosts[0x0a000001] = {0x020000000101, 1};
  options.hosts[0x0a000002] = {0x020000000102, 2};
  return options;
}

JobSpec job(uint16_t number) {
  JobSpec spec;
  spec.job = number;
  spec.generation = 3;
  spec.token = 7;
  spec.slots = 4;
  spec.max_lanes = 32;
  spec.formats = sap::kWordFormats;
  spec.children = {at("10.0.0.1:4000"), at("10.0.0.2:4000")};
  return spec;
}

class P4SwitchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = P4Switch::open(std::make_unique<RecordingRuntime>(device_),
                                 std::make_unique<ChipProgram>(options()));
    ASSERT_TRUE(opened) << opened.error().what;
    switch_ = std::move(*opened);
    device_.calls.clear();
  }
  Device device_;
  std::unique_ptr<P4Switch> switch_;
};

TEST_F(P4SwitchTest, AFenceReplacesEntriesWhoseKeysChange) {
  ASSERT_TRUE(switch_->add_job(job(7)));
  EXPECT_THAT(device_.calls,
              ElementsAre("group", "add sources", "add jobs", "add generations", "add members"));
  device_.calls.clear();
  ASSERT_TRUE(switch_->fence(7, 4, 8));
  EXPECT_THAT(device_.calls, ElementsAre("remove members", "remove generations", "add generations",
                                         "add members"));
  EXPECT_EQ(device_.entries.back().key[1].value, 4u);
  EXPECT_EQ(device_.entries.back().key[2].value, 8u);
  device_.calls.clear();
  ASSERT_TRUE(switch_->remove_job(7));
  EXPECT_THAT(device_.calls,
              ElementsAre("remove members", "remove generations", "remove jobs", "remove sources"));
  EXPECT_THAT(device_.entries, IsEmpty());
}

// Whatever call of it fails, the job can be fenced again, and removed.
TEST_F(P4SwitchTest, AFenceThatFailedCanBeRepeated) {
  for (const char* call :
       {"remove members", "remove generations", "add generations", "add members"}) {
    ASSERT_TRUE(switch_->add_job(job(7))) << call;
    device_.refuse = call;
    EXPECT_FALSE(switch_->fence(7, 4, 8)) << call;
    device_.refuse.clear();
    const auto fenced = switch_->fence(7, 5, 9);
    ASSERT_TRUE(fenced) << call << ": " << fenced.error().what;
    EXPECT_EQ(device_.entries.size(), 4u) << call;
    EXPECT_EQ(device_.entries.back().table, "members") << call;
    EXPECT_EQ(device_.entries.back().key[1].value, 5u) << call;
    ASSERT_TRUE(switch_->remove_job(7)) << call;
    EXPECT_THAT(device_.entries, IsEmpty()) << call;
  }
}

TEST_F(P4SwitchTest, RemovesAGroupThatIsThereInPart) {
  device_.refuse = "group";
  EXPECT_FALSE(switch_->add_job(job(7)));
  EXPECT_THAT(device_.groups, ElementsAre(1));
}

TEST_F(P4SwitchTest, CountersMayBeInSeveralArrays) {
  ASSERT_TRUE(switch_->add_job(job(7)));
  const auto totals = switch_->totals(7);
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->contributions, 0u);
  EXPECT_EQ(totals->rounds, 1001u);
  EXPECT_EQ(totals->rejected_shape, 12u);
}

TEST_F(P4SwitchTest, LimitsAreThoseOfTheProgram) {
  EXPECT_EQ(switch_->shape().max_lanes, 32u);
  EXPECT_EQ(switch_->shape().formats, sap::kWordFormats);
  JobSpec spec = job(7);
  spec.max_lanes = 33;
  EXPECT_THAT(switch_->add_job(spec).error().what, HasSubstr("at most 32 lanes on chip"));
  P4Options few = options();
  few.max_lanes = 16;
  const auto narrow = P4Switch::open(std::make_unique<RecordingRuntime>(device_),
                                     std::make_unique<ChipProgram>(std::move(few)));
  ASSERT_TRUE(narrow) << narrow.error().what;
  spec.max_lanes = 17;
  EXPECT_THAT((*narrow)->add_job(spec).error().what, HasSubstr("at most 16 lanes on chip"));
  P4Options two = options();
  two.shards = 2;
  const auto opened = P4Switch::open(std::make_unique<RecordingRuntime>(device_),
                                     std::make_unique<ChipProgram>(two));
  EXPECT_EQ(opened.error().what, "chip with shards 2: the program takes 1; set data.shards");
}

TEST(Placement, IsTheFirstThatFits) {
  const auto place = [](const std::vector<PlacedJob>& placed, const Footprint& wanted) {
    const auto found = find_place(placed, wanted, kTraits);
    return found ? std::pair<int, int>(found->index, found->first_slot) : std::pair(-1, -1);
  };
  const std::vector<PlacedJob> placed = {{{2, 0}, {8, 3}}, {{0, 16}, {40, 3}}};
  EXPECT_EQ(place({}, {64, 12}), std::pair(0, 0));
  EXPECT_EQ(place({}, {65, 3}), std::pair(-1, -1));
  EXPECT_EQ(place(placed, {8, 3}), std::pair(1, 8)) << "between them";
  EXPECT_EQ(place({placed[0], {{0, 16}, {32, 3}}}, {9, 3}), std::pair(1, 48)) << "behind them";
  EXPECT_EQ(place(placed, {9, 3}), std::pair(-1, -1)) << "no range is free";
  EXPECT_EQ(place(placed, {8, 7}), std::pair(-1, -1)) << "too many addresses";
  EXPECT_EQ(place({placed[0], placed[1], {{1, 8}, {4, 3}}}, {4, 3}), std::pair(-1, -1))
      << "no index is free";
}

}  // namespace
}  // namespace slime::net
