// The driver and the description that p4c writes of switch/p4/tna/switch.p4 (--bf-rt-schema), whose
// path SLIME_BFRT_JSON is: every table, key, action and parameter that TofinoProgram names is
// there, with the width that it has. tofino.test.sh compiles the program and sets it.
#include <fstream>
#include <sstream>

#include "switch/p4driver/p4_switch.h"
#include "switch/tofino/program.h"
#include "test/support/tofino_job.h"
#include "test/tofino/runtime_fixture.h"

namespace slime::tofino {
namespace {

TEST(RealProgram, HasAllThatTheDriverNames) {
  const char* path = std::getenv("SLIME_BFRT_JSON");
  if (path == nullptr) GTEST_SKIP() << "needs p4c's backend; test/p4/tofino.test.sh runs it";
  std::ostringstream json;
  json << std::ifstream(path).rdbuf();
  FakeBfrt fake;
  fake.change([&](FakeState& state) { state.program_json = json.str(); });
  auto opened = net::P4Switch::open(
      std::make_unique<net::BfRuntime>(fake.address(), "switch", kDevice, kLongMs),
      std::make_unique<net::TofinoProgram>(test::tofino_options({8, 9})));
  ASSERT_TRUE(opened) << opened.error().what;
  net::P4Switch& device = **opened;
  ASSERT_EQ(error_of(device.add_job(test::tofino_job())), "");
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
