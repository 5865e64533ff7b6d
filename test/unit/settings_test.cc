#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "settings/settings.h"

namespace slime {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const SettingRow& row_of(const std::vector<SettingRow>& rows, const std::string& name) {
  for (const SettingRow& row : rows) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << name << " is not in the table";
  return rows.front();
}

struct Case {
  const char* name;
  std::string text;
  std::string shown;  // how the value is shown once accepted
};

TEST(Settings, AcceptsWhatTheTableAllows) {
  const Case cases[] = {
      {"NCCL_SLIME_DISABLE", "1", "1"},
      {"NCCL_SLIME_DISABLE", "0", "0"},
      {"NCCL_SLIME_DISABLE", "Yes", "1"},
      {"NCCL_SLIME_DISABLE", "TRUE", "1"},
      {"NCCL_SLIME_DISABLE", "off", "0"},
      {"NCCL_SLIME_RAILS_PER_IF", "16", "16"},
      {"NCCL_SLIME_RAILS_PER_IF", "0", "0"},
      {"NCCL_SLIME_TRAFFIC_CLASS", "-1", "-1"},
      {"NCCL_SLIME_TRAFFIC_CLASS", "255", "255"},
      {"NCCL_SLIME_RAILS_PER_IF", "007", "7"},
      {"NCCL_SLIME_FLUSH_US", "0", "0"},
      {"NCCL_SLIME_MIN_STRIPE", "128", "128"},
      {"NCCL_SLIME_MIN_STRIPE", "65536", "64K"},
      {"NCCL_SLIME_MIN_STRIPE", "64k", "64K"},
      {"NCCL_SLIME_MIN_STRIPE", "3M", "3M"},
      {"NCCL_SLIME_MIN_STRIPE", "1G", "1G"},
      {"NCCL_SLIME_MIN_STRIPE", "1048576K", "1G"},
      {"NCCL_SLIME_EAGER_MAX", "0", "0"},
      {"NCCL_SLIME_EAGER_MAX", " 8K \t", "8K"},
      {"NCCL_SLIME_RAILS_PER_IF", " 1", "1"},
      {"NCCL_SLIME_SWITCH_HALF_BITS", "16 ", "16"},
      {"NCCL_SLIME_EAGER_MAX", "0K", "0"},
      {"NCCL_SLIME_PEER_TIMEOUT", "2.5", "2.5"},
      {"NCCL_SLIME_PEER_TIMEOUT", "600", "600"},
      {"NCCL_SLIME_STATS", "/tmp/with space/%h.%p.json", "/tmp/with space/%h.%p.json"},
      {"NCCL_SLIME_STATS", std::string(4095, 'x'), std::string(4095, 'x')},
      {"NCCL_SLIME_SWITCH_HALF_BITS", "32", "32"},
      {"NCCL_SLIME_SWITCH_HALF_BITS", "16", "16"},
      {"NCCL_SLIME_SWITCH_HALF_BITS", "auto", "auto"},
      {"NCCL_SLIME_SWITCH", "leaf-1.example", "leaf-1.example"},
      {"NCCL_SLIME_SWITCH", "[fd00::1]:1*64,leaf:65535", "[fd00::1]:1*64,leaf:65535"},
      {"NCCL_SLIME_SWITCH_TENANT", "physics.a_b-1", "physics.a_b-1"},
      {"NCCL_SLIME_DEBUG_MODE", "bypass", "bypass"},
  };
  for (const Case& c : cases) {
    const Environment environment{{c.name, c.text}};
    const auto settings = parse_settings(environment);
    ASSERT_TRUE(settings) << settings.error().what;
    const auto rows = describe(*settings, environment);
    EXPECT_EQ(row_of(rows, c.name).value, c.shown) << c.name << "=" << c.text;
    EXPECT_EQ(row_of(rows, c.name).source, c.name);
  }
}

TEST(Settings, RefusesMalformedAndOutOfRange) {
  const std::pair<const char*, std::string> cases[] = {
      {"DISABLE", "2"},
      {"DISABLE", "y"},
      {"DISABLE", "yes please"},
      {"DISABLE", "truetruetrue"},
      {"TRAFFIC_CLASS", "-2"},
      {"TRAFFIC_CLASS", "256"},
      {"RAILS_PER_IF", "17"},
      {"RAILS_PER_IF", "-1"},
      {"RAILS_PER_IF", "+1"},
      {"RAILS_PER_IF", "1,2"},
      {"RAILS_PER_IF", "0x2"},
      {"RAILS_PER_IF", "2K"},
      {"RAILS_PER_IF", "four"},
      {"RAILS_PER_IF", "4294967298"},
      {"RAILS_PER_IF", "99999999999999999999999"},
      {"RAILS_PER_IF", std::string("4\0", 2)},
      {"RAILS_PER_IF", std::string(100000, '1')},
      {"MIN_STRIPE", "1.5K"},
      {"MIN_STRIPE", "K"},
      {"MIN_STRIPE", "64KB"},
      {"MIN_STRIPE", "64 K"},
      {"MIN_STRIPE", "64KK"},
      {"MIN_STRIPE", "64T"},
      {"MIN_STRIPE", "-128"},
      {"MIN_STRIPE", "127"},
      {"MIN_STRIPE", "2G"},
      {"MIN_STRIPE", "1073741952"},
      {"MIN_STRIPE", "17179869184G"},  // 2^64: would wrap around to 0
      {"MIN_STRIPE", "8589934592G"},   // 2^63
      {"MIN_STRIPE", "18446744073709551744"},
      {"MIN_STRIPE", std::string("64K\0K", 5)},
      {"MIN_STRIPE", "130"},  // no multiple of 128
      {"PEER_TIMEOUT", "0.99"},
      {"PEER_TIMEOUT", "600.01"},
      {"PEER_TIMEOUT", "nan"},
      {"PEER_TIMEOUT", "inf"},
      {"PEER_TIMEOUT", "1e2"},
      {"PEER_TIMEOUT", "10s"},
      {"PEER_TIMEOUT", "."},
      {"PEER_TIMEOUT", "-5"},
      {"STATS", "line\nbreak"},
      {"STATS", std::string("cut\0here", 8)},
      {"STATS", std::string(4096, 'x')},
      {"SWITCH_HALF_BITS", "8"},
      {"SWITCH_HALF_BITS", "AUTO"},
      {"SWITCH_HALF_BITS", "32|16"},
      {"SWITCH_HALF_BITS", "|"},
      {"SWITCH_HALF_BITS", "1"},
      {"SWITCH", "1.2.3.4:99999"},
      {"SWITCH", "1.2.3.4:0"},
      {"SWITCH", "1.2.3.4:"},
      {"SWITCH", "leaf:99999"},
      {"SWITCH", "10.0.0.1,10.0.0.2:70000*2"},
      {"SWITCH", "10.0.0.1,"},
      {"SWITCH", "10.0.0.1*65"},
      {"SWITCH", "a,b,c,d,e,f,g,h,i"},
      {"SWITCH_TENANT", "two words"},
      {"DEBUG_MODE", "fast"},
  };
  for (const auto& [suffix, text] : cases) {
    const std::string name = std::string("NCCL_SLIME_") + suffix;
    const auto settings = parse_settings({{name, text}});
    ASSERT_FALSE(settings) << name << "=" << text;
    EXPECT_EQ(settings.error().status, Status::kConfig);
    EXPECT_THAT(settings.error().what, HasSubstr(name + "=\""));
    EXPECT_THAT(settings.error().what, HasSubstr("expected "));
    EXPECT_THAT(settings.error().what, Not(HasSubstr("\n")));
    EXPECT_LT(settings.error().what.size(), 400u);
  }
}

TEST(Settings, WhatThisHostCannotUseIsNamedAtTheStart) {
  Settings settings;
  EXPECT_THAT(unusable_here(settings), IsEmpty());
  settings.switch_key_file = "/nonexistent/\x1bkey";
  settings.tcp_congestion = "nosuch";
  EXPECT_THAT(unusable_here(settings),
              testing::ElementsAre(
                  testing::AllOf(HasSubstr("NCCL_SLIME_SWITCH_KEY_FILE=\"/nonexistent/ key\""),
                                 HasSubstr("No such file")),
                  testing::AllOf(HasSubstr("NCCL_SLIME_TCP_CONGESTION=\"nosuch\""),
                                 HasSubstr("this host has: "))));
}

TEST(Settings, ErrorSaysWhatIsAccepted) {
  EXPECT_EQ(parse_settings({{"NCCL_SLIME_MIN_STRIPE", "100"}}).error().what,
            "NCCL_SLIME_MIN_STRIPE=\"100\" is not accepted: expected a number of bytes from 0 to "
            "1G, a multiple of 128; K, M and G are understood");
  EXPECT_EQ(parse_settings({{"NCCL_SLIME_WATERMARK", "0"}}).error().what,
            "NCCL_SLIME_WATERMARK=\"0\" is not accepted: expected a whole number of credits from 1 "
            "to 1024");
}

TEST(Settings, EmptyCountsAsNotSet) {
  const Environment environment{{"NCCL_SLIME_RAILS_PER_IF", ""}, {"NCCL_SLIME_IFNAME", ""}};
  const auto settings = parse_settings(environment);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->rails_per_if, 0);
  EXPECT_EQ(row_of(describe(*settings, environment), "NCCL_SLIME_RAILS_PER_IF").source, "default");
}

TEST(Settings, FallbackOnlyWhereOursIsNotSet) {
  const auto parse = [](const Environment& environment) {
    const auto settings = parse_settings(environment);
    EXPECT_TRUE(settings);
    return std::pair(settings->ifname,
                     row_of(describe(*settings, environment), "NCCL_SLIME_IFNAME").source);
  };
  EXPECT_THAT(parse({{"NCCL_SOCKET_IFNAME", "eth"}}), testing::Pair("eth", "NCCL_SOCKET_IFNAME"));
  EXPECT_THAT(parse({{"NCCL_SOCKET_IFNAME", "eth"}, {"NCCL_SLIME_IFNAME", ""}}),
              testing::Pair("eth", "NCCL_SOCKET_IFNAME"));
  EXPECT_THAT(parse({{"NCCL_SOCKET_IFNAME", "eth"}, {"NCCL_SLIME_IFNAME", "=ib0"}}),
              testing::Pair("=ib0", "NCCL_SLIME_IFNAME"));
  const auto refused = parse_settings({{"NCCL_SOCKET_IFNAME", "\x1b[2J"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("NCCL_SOCKET_IFNAME=\" [2J\""));
}

struct FallbackCase {
  const char *name, *fallback, *text;
};

// NCCL says -1 for "not set", and takes numbers that mean nothing here.
TEST(Settings, AValueOfAFallbackThatIsNotAcceptedCountsAsNotSet) {
  const FallbackCase cases[] = {{"NCCL_SLIME_IB_TIMEOUT", "NCCL_IB_TIMEOUT", "abc"},
                                {"NCCL_SLIME_IB_TIMEOUT", "NCCL_IB_TIMEOUT", "32"},
                                {"NCCL_SLIME_SERVICE_LEVEL", "NCCL_IB_SL", "16"},
                                {"NCCL_SLIME_IB_RETRY_CNT", "NCCL_IB_RETRY_CNT", "-1"},
                                {"NCCL_SLIME_QPS_PER_RAIL", "NCCL_IB_QPS_PER_CONNECTION", "0"},
                                {"NCCL_SLIME_QPS_PER_RAIL", "NCCL_IB_QPS_PER_CONNECTION", "9x"},
                                {"NCCL_SLIME_IB_DISABLE", "NCCL_IB_DISABLE", "2"},
                                {"NCCL_SLIME_ADDR_FAMILY", "NCCL_IB_ADDR_FAMILY", "AF_IB"}};
  for (const auto& [name, fallback, text] : cases) {
    const Environment environment{{fallback, text}};
    std::vector<std::string> warnings;
    const auto settings = parse_settings(environment, &warnings);
    ASSERT_TRUE(settings) << settings.error().what;
    const auto rows = describe(*settings, environment);
    const SettingRow& row = row_of(rows, name);
    EXPECT_EQ(row.value, row.default_value) << fallback;
    EXPECT_EQ(row.source, "default") << fallback;
    EXPECT_EQ(variable_of(name, environment), name);
    EXPECT_THAT(warnings, testing::ElementsAre(testing::AllOf(
                              HasSubstr(std::string(fallback) + "=\"" + text + "\""),
                              testing::EndsWith("; " + row.default_value + " is used"))));
  }
}

TEST(Settings, ACountOfAFallbackThatIsTooLargeIsTheLargest) {
  for (const char* const text : {"9", "64", "2147483647"}) {
    const Environment environment{{"NCCL_IB_QPS_PER_CONNECTION", text}};
    std::vector<std::string> warnings;
    const auto settings = parse_settings(environment, &warnings);
    ASSERT_TRUE(settings) << settings.error().what;
    EXPECT_EQ(settings->qps_per_rail, 8);
    const auto rows = describe(*settings, environment);
    EXPECT_EQ(row_of(rows, "NCCL_SLIME_QPS_PER_RAIL").source, "NCCL_IB_QPS_PER_CONNECTION");
    EXPECT_EQ(variable_of("NCCL_SLIME_QPS_PER_RAIL", environment), "NCCL_IB_QPS_PER_CONNECTION");
    EXPECT_THAT(warnings, testing::ElementsAre("NCCL_IB_QPS_PER_CONNECTION=\"" + std::string(text) +
                                               "\" is not accepted: expected a whole number of "
                                               "queue pairs from 1 to 8; 8 is used"));
  }
  EXPECT_FALSE(parse_settings({{"NCCL_SLIME_QPS_PER_RAIL", "9"}})) << "ours is an error";
}

TEST(Settings, AFallbackThatIsNotUsedIsNotLookedAt) {
  std::vector<std::string> warnings;
  const auto settings =
      parse_settings({{"NCCL_SLIME_IB_TIMEOUT", "20"}, {"NCCL_IB_TIMEOUT", "abc"}}, &warnings);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->ib_timeout, 20);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Settings, NamesTheSourceOfEachValue) {
  const Environment environment{{"NCCL_SLIME_MAX_BATCH", "8"}, {"NCCL_SLIME_WATERMARK", "4"}};
  Settings settings = *parse_settings(environment);
  settings.watermark = 2;
  settings.flush_us = 7;
  const auto rows = describe(settings, environment);
  EXPECT_EQ(row_of(rows, "NCCL_SLIME_MAX_BATCH").source, "NCCL_SLIME_MAX_BATCH");
  EXPECT_EQ(row_of(rows, "NCCL_SLIME_WATERMARK").source, "program");
  EXPECT_EQ(row_of(rows, "NCCL_SLIME_FLUSH_US").source, "program");
  EXPECT_EQ(row_of(rows, "NCCL_SLIME_EAGER_MAX").source, "default");
}

TEST(Settings, WarnsOfUnknownNames) {
  std::vector<std::string> warnings;
  const Environment environment{{"NCCL_SLIME_MIN_STRIP", "64K"},
                                {"NCCL_SLIME_RAIL_PER_IFS", "2"},
                                {"NCCL_SLIMEY", "1"},
                                {"NCCL_SLIME_WATERMARK", "4"},
                                {"NCCL_DEBUG", "INFO"},
                                {"NCCL_SLIME_" + std::string(100000, 'A'), "1"}};
  ASSERT_TRUE(parse_settings(environment, &warnings));
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_LT(warnings[0].size(), 200u);  // the hundred thousand letters
  EXPECT_EQ(warnings[1],
            "NCCL_SLIME_MIN_STRIP is no setting and has no effect; the nearest is "
            "NCCL_SLIME_MIN_STRIPE");
  EXPECT_THAT(warnings[2], HasSubstr("the nearest is NCCL_SLIME_RAILS_PER_IF"));
}

TEST(Settings, SuggestsTheNameThatWasSpelledOut) {
  std::vector<std::string> warnings;
  ASSERT_TRUE(parse_settings({{"NCCL_SLIME_RAILS_PER_INTERFACE", "2"}}, &warnings));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].ends_with("the nearest is NCCL_SLIME_RAILS_PER_IF")) << warnings[0];
}

TEST(Settings, NamesTheVariableThatAValueComesFrom) {
  EXPECT_EQ(variable_of("NCCL_SLIME_IFNAME", {{"NCCL_SOCKET_IFNAME", "a"}}), "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(
      variable_of("NCCL_SLIME_IFNAME", {{"NCCL_SOCKET_IFNAME", "a"}, {"NCCL_SLIME_IFNAME", "b"}}),
      "NCCL_SLIME_IFNAME");
  EXPECT_EQ(variable_of("NCCL_SLIME_IFNAME", {}), "NCCL_SLIME_IFNAME");
}

TEST(Settings, NoWarningsForKnownNames) {
  std::vector<std::string> warnings;
  Environment environment;
  for (const SettingRow& row : describe(Settings(), {})) environment[row.name] = "";
  ASSERT_TRUE(parse_settings(environment, &warnings));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(Settings, DefaultsAreAcceptedValues) {
  const auto rows = describe(Settings(), {});
  EXPECT_GE(rows.size(), 16u);
  for (const SettingRow& row : rows) {
    const Environment environment{{row.name, row.default_value}};
    const auto settings = parse_settings(environment);
    ASSERT_TRUE(settings) << settings.error().what;
    EXPECT_EQ(row_of(describe(*settings, {}), row.name).source, "default") << row.name;
    EXPECT_THAT(row.help, testing::EndsWith(".")) << row.name;
  }
}

TEST(Settings, ReadsTheProcessEnvironment) {
  ASSERT_EQ(setenv("NCCL_SLIME_RAILS_PER_IF", "3", 1), 0);
  ASSERT_EQ(setenv("SLIME_UNIT_TEST_OTHER", "1", 1), 0);
  const Environment environment = process_environment();
  ASSERT_EQ(unsetenv("NCCL_SLIME_RAILS_PER_IF"), 0);
  ASSERT_EQ(unsetenv("SLIME_UNIT_TEST_OTHER"), 0);
  ASSERT_EQ(environment.count("NCCL_SLIME_RAILS_PER_IF"), 1u);
  EXPECT_EQ(environment.at("NCCL_SLIME_RAILS_PER_IF"), "3");
  EXPECT_EQ(environment.count("SLIME_UNIT_TEST_OTHER"), 0u);
}

TEST(Settings, TextsForUsersOfTheLibraryNameOptions) {
  EXPECT_EQ(with_option_names("raise NCCL_SLIME_PEER_TIMEOUT (2 s), or NCCL_SLIME_HCA=mlx5"),
            "raise peer_timeout (2 s), or hca=mlx5");
  EXPECT_EQ(with_option_names("NCCL_IB_TIMEOUT"), "ib_timeout") << "a fallback";
  for (const char* const other : {"", "NCCL_SLIME_PEER_TIMEOUTS", "xNCCL_DEBUG", "a NCCL_ b"}) {
    EXPECT_EQ(with_option_names(other), other);
  }
}

TEST(Settings, TakesTheOptionsOfAProgram) {
  const Environment environment{{"NCCL_SLIME_IFNAME", "eth0"}, {"NCCL_SLIME_HCA", "mlx5"}};
  const auto both = with_options(environment, " ifname = eth1,eth2;; peer_timeout=5;");
  ASSERT_TRUE(both) << both.error().what;
  EXPECT_EQ(*both, (Environment{{"NCCL_SLIME_IFNAME", "eth1,eth2"},
                                {"NCCL_SLIME_HCA", "mlx5"},
                                {"NCCL_SLIME_PEER_TIMEOUT", "5"}}));
  EXPECT_EQ(*with_options(environment, ""), environment);
  for (const char* const wrong : {"ifname", "=", "name=1", "NCCL_SLIME_IFNAME=lo", "hca=1; x"}) {
    const auto refused = with_options({}, wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().status, Status::kConfig);
    EXPECT_NE(refused.error().what.find("no setting"), std::string::npos) << refused.error().what;
  }
}

TEST(Settings, SecondsInNanoseconds) {
  EXPECT_EQ(seconds_to_ns(10), 10'000'000'000u);
  EXPECT_EQ(seconds_to_ns(0.25), 250'000'000u);
  EXPECT_EQ(seconds_to_ns(86400), 86'400'000'000'000u);
}

}  // namespace
}  // namespace slime
