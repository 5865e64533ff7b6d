// What BfRuntime asks of BFRuntime's server.
#include "switch/tofino/messages.h"
#include "test/tofino/device_json.h"
#include "test/tofino/runtime_fixture.h"

namespace slime::tofino {
namespace {

using net::TableField;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;

TEST_F(Runtime, IsOneClientOfTheProgram) {
  const FakeState state = fake_->state();
  EXPECT_EQ(state.subscriber, net::bfrt::Client::kId);
  EXPECT_EQ(state.binder, net::bfrt::Client::kId);
  EXPECT_EQ(state.subscriptions, 1u);
  EXPECT_EQ(state.device, kDevice);
  EXPECT_EQ(state.pipe, 0xffffu);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(runtime_.is_connected());
}

TEST_F(Runtime, WritesExactEntries) {
  ASSERT_EQ(error_of(runtime_.add(host(0x020000000104, 0x103))), "");
  const FakeEntries hosts = entries("hosts");
  ASSERT_THAT(hosts, ElementsAre(Key("dst_addr=020000000104")));
  EXPECT_EQ(hosts.begin()->second.action, "forward");
  EXPECT_THAT(hosts.begin()->second.data, ElementsAre(Pair("port", "0103")));
  EXPECT_THAT(error_of(runtime_.add(host(0x020000000104, 1))),
              AllOf(HasSubstr(where() + " does not add an entry to Ingress.bridge.hosts"),
                    HasSubstr("ALREADY_EXISTS: Table Add failed")));
}

// The value has no bit that its mask has not, and the priority is there.
TEST_F(Runtime, WritesTernaryEntries) {
  ASSERT_EQ(error_of(runtime_.add(job(0x1234, 0x0a0b0c0d))), "");
  const FakeEntries jobs = entries("jobs");
  ASSERT_THAT(jobs, ElementsAre(Key("job=1234, flags=00b0/00f0, $MATCH_PRIORITY=00000000")));
  EXPECT_THAT(
      jobs.begin()->second.data,
      ElementsAre(Pair("generation", "04"), Pair("has_parent", "true"), Pair("token", "0a0b0c0d")));
  net::TableEntry any = job(1, 2);
  any.key[0].mask = TableField::kExact;
  ASSERT_EQ(error_of(runtime_.add(any)), "");
  EXPECT_THAT(entries("jobs"),
              Contains(Key("job=0001, flags=0abc/0fff, $MATCH_PRIORITY=00000000")));
}

TEST_F(Runtime, ChangesAndRemovesEntries) {
  ASSERT_EQ(error_of(runtime_.add(job(7, 1))), "");
  ASSERT_EQ(error_of(runtime_.modify(job(7, 2))), "");
  EXPECT_THAT(entries("jobs").begin()->second.data, Contains(Pair("token", "00000002")));
  net::TableEntry other_action = job(7, 0);
  other_action.action = {};
  ASSERT_EQ(error_of(runtime_.remove(other_action)), "") << "whatever its action";
  EXPECT_THAT(entries("jobs"), IsEmpty());
  EXPECT_THAT(error_of(runtime_.modify(job(7, 3))), HasSubstr("does not change an entry"));
  EXPECT_THAT(error_of(runtime_.remove(job(7, 3))), HasSubstr("NOT_FOUND"));
  ASSERT_EQ(error_of(runtime_.set_default("Ingress.bridge.hosts",
                                          {"Ingress.bridge.flood", {{"group", 16, 1}}})),
            "");
  const FakeEntry flood = fake_->state().defaults.at("hosts");
  EXPECT_EQ(flood.action, "flood");
  EXPECT_THAT(flood.data, ElementsAre(Pair("group", "0001")));
}

// Nothing is asked of the device.
TEST_F(Runtime, RefusesWhatTheProgramHasNot) {
  const auto with = [&](const std::function<void(net::TableEntry&)>& change) {
    net::TableEntry entry = job(1, 2);
    change(entry);
    return error_of(runtime_.add(entry));
  };
  EXPECT_THAT(
      with([](auto& e) { e.table = "Ingress.nothing"; }),
      AllOf(HasSubstr(where()), HasSubstr("program switch has no match table Ingress.noth")));
  EXPECT_THAT(with([](auto& e) { e.table = "Ingress.counts"; }), HasSubstr("no match table"));
  EXPECT_THAT(with([](auto& e) { e.key[1].name = "hdr.x"; }), HasSubstr("key hdr.slime.job"));
  EXPECT_THAT(with([](auto& e) { e.key.push_back({"hdr.x", 8, 0}); }), HasSubstr("a key"));
  EXPECT_THAT(with([](auto& e) { e.key[1].bits = 32; }), HasSubstr("another width"));
  EXPECT_THAT(with([](auto& e) { e.key[1].value = 0x10000; }), HasSubstr("another width"));
  EXPECT_THAT(with([](auto& e) { e.key[1].mask = 0xff; }), HasSubstr("another way"));
  EXPECT_THAT(with([](auto& e) { e.action.name = "Ingress.bridge.flood"; }),
              HasSubstr("action Ingress.bridge.flood of pipe.Ingress.jobs is missing"));
  EXPECT_THAT(with([](auto& e) { e.action.data.pop_back(); }), HasSubstr("number of parameters"));
  EXPECT_THAT(with([](auto& e) { e.action.data[0].name = "x"; }), HasSubstr("parameter x"));
  EXPECT_THAT(with([](auto& e) { e.action.data[1].bits = 16; }), HasSubstr("parameter token"));
  EXPECT_THAT(error_of(runtime_.clear_registers({"Ingress.counts", 0, 1})),
              HasSubstr("no register"));
  EXPECT_FALSE(runtime_.read_counter({"Ingress.rate", 0}));
  EXPECT_THAT(error_of(runtime_.limit("Ingress.bytes_rate", 1)), HasSubstr("meter of packets"));
  EXPECT_THAT(fake_->state().calls, IsEmpty());
  EXPECT_TRUE(runtime_.is_connected());
}

TEST_F(Runtime, ClearsRangesOfRegisters) {
  const std::map<std::string, std::string> dirty = {{"low", "00000001"}, {"high", "00000001"}};
  fake_->change([&](FakeState& state) {
    for (const char* index : {"000003e8", "00000bb7", "00000bb8"}) {
      state.tables["arrivals"][std::string("$REGISTER_INDEX=") + index] = {"", dirty};
    }
  });
  ASSERT_EQ(error_of(runtime_.clear_registers({"Ingress.arrivals", 500, 3000})), "");
  EXPECT_THAT(fake_->state().writes, ElementsAre(1000, 1000, 500));
  const FakeEntries all = entries("arrivals");
  EXPECT_EQ(all.size(), 2501u);
  const std::map<std::string, std::string> clean = {{"low", "00000000"}, {"high", "00000000"}};
  EXPECT_EQ(all.at("$REGISTER_INDEX=000001f4").data, clean);
  EXPECT_EQ(all.at("$REGISTER_INDEX=000003e8").data, clean);
  EXPECT_EQ(all.at("$REGISTER_INDEX=00000bb7").data, clean);
  EXPECT_EQ(all.at("$REGISTER_INDEX=00000bb8").data, dirty) << "3000 itself is not of the range";
  begin();
  ASSERT_EQ(error_of(runtime_.clear_registers({"Ingress.arrivals", 7, 7})), "");
  EXPECT_THAT(fake_->state().writes, IsEmpty());
}

TEST_F(Runtime, ReadsAndClearsCounters) {
  const auto read = runtime_.read_counter({"Ingress.counts", 5});
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(*read, 2010u) << "of two pipes";
  ASSERT_EQ(error_of(runtime_.clear_counter({"Ingress.counts", 5})), "");
  EXPECT_THAT(entries("counts").at("$COUNTER_INDEX=00000005").data,
              ElementsAre(Pair("$COUNTER_SPEC_PKTS", "0000000000000000")));
}

TEST_F(Runtime, SetsRatesOfMeters) {
  ASSERT_EQ(error_of(runtime_.limit("Ingress.rate", 1000)), "");
  const FakeEntry meter = entries("rate").at("$METER_INDEX=00000000");
  for (const char* field : {"CIR_PPS", "PIR_PPS", "CBS_PKTS", "PBS_PKTS"}) {
    EXPECT_EQ(meter.data.at(std::string("$METER_SPEC_") + field), "00000000000003e8");
  }
}

// Replicas of one number are one node.
TEST_F(Runtime, MakesAndRemovesGroups) {
  ASSERT_EQ(error_of(runtime_.add_group(group(5))), "");
  EXPECT_THAT(fake_->state().calls, ElementsAre("add node", "add node", "add mgid"));
  FakeEntries nodes = entries("node");
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_THAT(nodes.at("$MULTICAST_NODE_ID=00000001").data,
              ElementsAre(Pair("$DEV_PORT", "[1 260]"), Pair("$MULTICAST_LAG_ID", "[]"),
                          Pair("$MULTICAST_RID", "0007")));
  EXPECT_THAT(nodes.at("$MULTICAST_NODE_ID=00000002").data,
              AllOf(Contains(Pair("$DEV_PORT", "[2]")), Contains(Pair("$MULTICAST_RID", "0009"))));
  EXPECT_THAT(
      entries("mgid").at("$MGID=0005").data,
      ElementsAre(Pair("$MULTICAST_NODE_ID", "[1 2]"), Pair("$MULTICAST_NODE_L1_XID", "[0 0]"),
                  Pair("$MULTICAST_NODE_L1_XID_VALID", "[0 0]")));
  EXPECT_THAT(error_of(runtime_.add_group(group(5))), HasSubstr("there already"));
  ASSERT_EQ(error_of(runtime_.add_group(group(6))), "");
  EXPECT_THAT(entries("mgid").at("$MGID=0006").data, Contains(Pair("$MULTICAST_NODE_ID", "[3 4]")));
  ASSERT_EQ(error_of(runtime_.remove_group(5)), "");
  EXPECT_THAT(entries("mgid"), ElementsAre(Key("$MGID=0006")));
  EXPECT_EQ(entries("node").size(), 2u);
  ASSERT_EQ(error_of(runtime_.add_group({.id = 8, .replicas = {{0, 1}}})), "");
  EXPECT_THAT(entries("mgid").at("$MGID=0008").data, Contains(Pair("$MULTICAST_NODE_ID", "[1]")));
  begin();
  ASSERT_EQ(error_of(runtime_.remove_group(5)), "") << "there is nothing of it";
  EXPECT_THAT(fake_->state().calls, IsEmpty());
  ASSERT_EQ(error_of(runtime_.add_group({.id = 9})), "");
  EXPECT_THAT(entries("mgid").at("$MGID=0009").data, Contains(Pair("$MULTICAST_NODE_ID", "[]")));
}

// Whichever part of a group is refused, remove_group() removes the rest. The error is the first.
TEST_F(Runtime, RemovesPartsOfGroups) {
  for (const char* part : {"add node", "add mgid"}) {
    fake_->change([&](FakeState& state) { state.fail_at = part; });
    EXPECT_THAT(error_of(runtime_.add_group(group(5))),
                AllOf(HasSubstr("does not make multicast group 5: RESOURCE_EXHAUSTED: no room for"),
                      HasSubstr(part + 4)));
    fake_->change([&](FakeState& state) { state.fail_at = "remove node"; });
    if (part == std::string("add mgid")) {
      EXPECT_THAT(error_of(runtime_.remove_group(5)),
                  HasSubstr("does not remove multicast group 5"));
    }
    fake_->change([](FakeState& state) { state.fail_at.clear(); });
    ASSERT_EQ(error_of(runtime_.remove_group(5)), "");
    EXPECT_THAT(entries("node"), IsEmpty());
    EXPECT_THAT(entries("mgid"), IsEmpty());
  }
  EXPECT_EQ(error_of(runtime_.add_group(group(5))), "");
}

TEST_F(Runtime, MakesAndChangesMirroringSessions) {
  ASSERT_EQ(error_of(runtime_.mirror({9, 260})), "");
  const FakeEntry made = entries("cfg").at("$sid=0009");
  EXPECT_EQ(made.action, "$normal");
  EXPECT_THAT(made.data, ElementsAre(Pair("$direction", "BOTH"), Pair("$session_enable", "true"),
                                     Pair("$ucast_egress_port", "00000104"),
                                     Pair("$ucast_egress_port_valid", "true")));
  ASSERT_EQ(error_of(runtime_.mirror({9, 3})), "");
  EXPECT_THAT(entries("cfg").at("$sid=0009").data,
              Contains(Pair("$ucast_egress_port", "00000003")));
  fake_->change([](FakeState& state) { state.fail_at = "modify cfg"; });
  EXPECT_THAT(error_of(runtime_.mirror({9, 4})), HasSubstr("mirroring session 9"));
}

TEST_F(Runtime, ResetsWhatTheProgramHas) {
  ASSERT_EQ(error_of(runtime_.add(host(1, 1))), "");
  ASSERT_EQ(error_of(runtime_.add_group(group(5))), "");
  ASSERT_EQ(error_of(runtime_.add_group(group(0x102))), "");
  ASSERT_EQ(error_of(runtime_.limit("Ingress.rate", 1000)), "");
  ASSERT_EQ(error_of(runtime_.set_default("Ingress.bridge.hosts",
                                          {"Ingress.bridge.flood", {{"group", 16, 1}}})),
            "");
  fake_->change([](FakeState& state) {
    state.tables["formats"]["of the program"] = {};
    state.tables["cfg"]["$sid=0001"] = {};
  });
  begin();
  ASSERT_EQ(error_of(runtime_.reset()), "");
  const FakeState state = fake_->state();
  EXPECT_THAT(state.calls, ElementsAre("clear hosts", "clear jobs", "clear arrivals",
                                       "clear counts", "clear rate", "clear bytes_rate",
                                       "read mgid", "remove mgid", "remove mgid", "read node",
                                       "remove node", "remove node", "remove node", "remove node"));
  for (const auto& [name, left] : state.tables) {
    const bool stays = name == "formats" || name == "cfg";
    EXPECT_EQ(left.size(), stays ? 1u : 0u) << name;
  }
  EXPECT_THAT(state.defaults, IsEmpty());
  EXPECT_EQ(error_of(runtime_.add_group(group(5))), "");
}

// What a server answers besides, or without a key, would delete more than it has.
TEST(Removals, AreOfEntriesOfTheTable) {
  const auto info = net::bfrt::Info::parse(kProgramJson, kChipJson);
  ASSERT_TRUE(info);
  const net::bfrt::Table& groups = *info->find("$pre.mgid");
  bfrt_proto::ReadResponse found;
  found.add_entities()->mutable_table_entry()->set_table_id(groups.id);
  bfrt_proto::TableEntry* other = found.add_entities()->mutable_table_entry();
  other->set_table_id(groups.id + 1);
  other->mutable_key()->add_fields()->set_field_id(1);
  *found.add_entities() = found.entities(1);
  found.mutable_entities(2)->mutable_table_entry()->set_table_id(groups.id);
  bfrt_proto::WriteRequest request;
  net::bfrt::put_removals(groups, found, &request);
  ASSERT_EQ(request.updates_size(), 1);
  EXPECT_EQ(request.updates(0).entity().table_entry().table_id(), groups.id);
  EXPECT_TRUE(request.updates(0).entity().table_entry().has_key());
}

}  // namespace
}  // namespace slime::tofino
