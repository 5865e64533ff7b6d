// The driver and the description that p4c writes of switch/p4/tna/switch.p4 (--bf-rt-schema), whose
// path SLIME_BFRT_JSON is: every table, key, action and parameter that TofinoProgram names is
// there, with the width that it has. tofino.test.sh compiles the program and sets it.
#include <fstream>
#include <sstream>

#include "switch/p4driver/p4_switch.h"
#include "switch/tofino/program.h"
#include "test/tofino/runtime_fixture.h"

namespace slime::tofino {
namespace {

SocketAddress at(const char* text) { return *SocketAddress::parse(text); }

net::P4Options options() {
  net::P4Options options;
  options.address = at("10.0.0.254:28880");
  options.mac = 0x020000000001;
  options.hosts[0x0a000001] = {0x020000000101, 8};
  options.hosts[0x0a000002] = {0x020000000102, 9};
  return options;
}

net::JobSpec spec() {
  net::JobSpec spec;
  spec.job = 7;
  spec.generation = 3;
  spec.token = 0x01020304;
  spec.slots = 5;
  spec.max_lanes = 32;
  spec.formats = sap::kWordFormats;
  spec.children = {at("10.0.0.1:4000"), at("10.0.0.2:4001")};
  return spec;
}

TEST(RealProgram, HasAllThatTheDriverNames) {
  const char* path = std::getenv("SLIME_BFRT_JSON");
  if (path == nullptr) GTEST_SKIP() << "needs p4c's backend; test/p4/tofino.test.sh runs it";
  std::ostringstream json;
  json << std::ifstream(path).rdbuf();
  FakeBfrt fake;
  fake.change([&](FakeState& state) { state.program_json = json.str(); });
  auto opened = net::P4Switch::open(
      std::make_unique<net::BfRuntime>(fake.address(), "switch", kDevice, kLongMs),
      std::make_unique<net::TofinoProgram>(options()));
  ASSERT_TRUE(opened) << opened.error().what;
  net::P4Switch& device = **opened;
  ASSERT_EQ(error_of(device.add_job(spec())), "");
  FakeState state = fake.state();
  EXPECT_EQ(state.tables["members"].size(), 2u);
  EXPECT_EQ(state.tables["sources"].size(), 2u);
  EXPECT_EQ(state.tables["ends"].size(), 2u);
  ASSERT_EQ(error_of(device.fence(7, 4, 5)), "");
  const auto totals = device.totals(7);
  ASSERT_TRUE(totals) << totals.error().what;
  EXPECT_EQ(device.counters().front().name, std::string("malformed"));
  ASSERT_EQ(error_of(device.remove_job(7)), "");
  state = fake.state();
  EXPECT_EQ(state.tables["members"].size(), 0u);
  EXPECT_EQ(state.tables["jobs"].size(), 0u);
  EXPECT_EQ(state.tables["hosts"].size(), 3u);
}

}  // namespace
}  // namespace slime::tofino
