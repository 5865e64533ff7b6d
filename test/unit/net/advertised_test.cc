#include "base/net/advertised.h"

#include <gtest/gtest.h>

namespace slime {
namespace {

std::string told(const char* setting, const char* own) {
  return AdvertisedAddresses::of_setting(setting).of(*SocketAddress::parse(own)).to_string();
}

TEST(AdvertisedAddresses, OneForAll) {
  EXPECT_EQ(told("203.0.113.7", "10.0.0.1:4000"), "203.0.113.7:4000");
  EXPECT_EQ(told(" 2001:db8::7 ", "[fd00::1]:4000"), "[2001:db8::7]:4000");
  EXPECT_EQ(told("203.0.113.7", "[fd00::1]:4000"), "[fd00::1]:4000");  // another family
}

TEST(AdvertisedAddresses, OneForEach) {
  const char* const setting = "10.0.0.1=203.0.113.7, 10.1.0.1 = 203.0.113.8,fd00::1=2001:db8::7";
  EXPECT_EQ(told(setting, "10.0.0.1:4000"), "203.0.113.7:4000");
  EXPECT_EQ(told(setting, "10.1.0.1:4000"), "203.0.113.8:4000");
  EXPECT_EQ(told(setting, "[fd00::1]:4000"), "[2001:db8::7]:4000");
  EXPECT_EQ(told(setting, "10.2.0.1:4000"), "10.2.0.1:4000");
}

TEST(AdvertisedAddresses, NothingIsSaid) { EXPECT_EQ(told("", "10.0.0.1:4000"), "10.0.0.1:4000"); }

TEST(AdvertisedAddresses, WhatIsNoAddressIsRefused) {
  for (const char* text :
       {"", "host", "0.0.0.0", "203.0.113.7:80", "10.0.0.1=", "=203.0.113.7",
        "10.0.0.1=203.0.113.7,", "10.0.0.1=203.0.113.7,x", "203.0.113.7,203.0.113.8",
        "10.0.0.1==203.0.113.7", "10.0.0.1=2001:db8::7"}) {
    EXPECT_FALSE(AdvertisedAddresses::parse(text)) << text;
  }
}

}  // namespace
}  // namespace slime
