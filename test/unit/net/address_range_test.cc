#include "base/interfaces/address_range.h"

#include <gtest/gtest.h>

namespace slime {
namespace {

bool in(const char* range, const char* address) {
  return AddressRange::parse(range).value().has(SocketAddress::parse(address).value());
}

TEST(AddressRange, HasTheAddressesOfItsPrefix) {
  EXPECT_TRUE(in("10.1.0.0/16", "10.1.255.3"));
  EXPECT_FALSE(in("10.1.0.0/16", "10.2.0.1"));
  EXPECT_TRUE(in("10.1.7.9/16", "10.1.0.1")) << "what follows the prefix does not count";
  EXPECT_TRUE(in("10.1.2.0/23", "10.1.3.1"));
  EXPECT_FALSE(in("10.1.2.0/23", "10.1.4.1"));
  EXPECT_TRUE(in("10.1.2.3/32", "10.1.2.3"));
  EXPECT_FALSE(in("10.1.2.3/32", "10.1.2.2"));
  EXPECT_TRUE(in("fd00::/8", "fdff::1"));
  EXPECT_FALSE(in("fd00::/8", "fe00::1"));
  EXPECT_FALSE(in("fd00::/8", "10.0.0.1"));
  EXPECT_TRUE(in("0.0.0.0/0", "10.0.0.1"));
  EXPECT_FALSE(in("0.0.0.0/0", "fd00::1"));
}

TEST(AddressRange, ListsAreRangesAndCommas) {
  EXPECT_EQ(parse_ranges("10.1.0.0/16,fd00::/8").value().size(), 2u);
  EXPECT_EQ(parse_ranges(" 10.1.0.0/16 ,\tfd00::/8 ").value().size(), 2u);
  for (const char* bad : {"", ",", "10.1.0.0", "10.1.0.0/", "10.1.0.0/33", "10.1.0.0/-1", "/8",
                          "10.1.0.0/8,", ",fd00::/8", "10.1/16", "fd00::/129", "eth0",
                          "10.1.0.0/16 fd00::/8", "10.1.0.0/16;fd00::/8", "^10.0.0.0/8"}) {
    EXPECT_FALSE(parse_ranges(bad)) << bad;
  }
}

}  // namespace
}  // namespace slime
