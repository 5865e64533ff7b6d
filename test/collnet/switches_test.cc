// NCCL_SLIME_SWITCH, as users write it.
#include "collnet/comm/switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slime {
namespace {

using testing::HasSubstr;

NamedSwitch named(const char* control, uint32_t weight = 1) {
  return {SocketAddress::parse(control).value(), weight};
}

auto parse(const std::string& text) {
  return parse_switches(text, AF_INET, Deadline(SteadyClock::instance(), 0));
}

std::string error_of(const std::string& text) {
  const auto switches = parse(text);
  return switches ? "none" : switches.error().what;
}

TEST(Switches, OneOrSeveralWithWeights) {
  EXPECT_EQ(parse("10.0.0.1:48900").value(), std::vector{named("10.0.0.1:48900")});
  EXPECT_EQ(parse("10.0.0.1").value(), std::vector{named("10.0.0.1:28900")});
  EXPECT_EQ(
      parse("10.0.0.1:1,10.0.0.1:2*64,10.0.0.2*3").value(),
      (std::vector{named("10.0.0.1:1"), named("10.0.0.1:2", 64), named("10.0.0.2:28900", 3)}));
  EXPECT_EQ(parse("[::1]:1*2,[::1]:2").value(),
            (std::vector{named("[::1]:1", 2), named("[::1]:2")}));
}

TEST(Switches, WhatCannotBeIsRefused) {
  EXPECT_THAT(error_of("10.0.0.1,"), HasSubstr("names no host"));
  EXPECT_THAT(error_of(",10.0.0.1"), HasSubstr("names no host"));
  EXPECT_THAT(error_of("*2"), HasSubstr("names no host"));
  for (const char* weight : {"", "0", "65", "-1", "2*2", "x", "1.5", "99999999999"}) {
    EXPECT_THAT(error_of(std::string("10.0.0.1*") + weight), HasSubstr("from 1 to 64")) << weight;
  }
  EXPECT_THAT(error_of("10.0.0.1,10.0.0.1:28900*2"), HasSubstr("names 10.0.0.1:28900*2 twice"));
  EXPECT_THAT(error_of("10.0.0.1,[::1]:1"), HasSubstr("both IP versions"));
  std::string nine = "10.0.0.1:1";
  for (int port = 2; port <= 9; ++port) nine += ",10.0.0.1:" + std::to_string(port);
  EXPECT_THAT(error_of(nine), HasSubstr("names 9 switches, and 8 are the most"));
}

}  // namespace
}  // namespace slime
