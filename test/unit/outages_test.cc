// One cause is one warning, however many links lose a rail by it.
#include "devices/outages.h"

#include <gtest/gtest.h>

namespace slime::test {
namespace {

TEST(Outages, TheFirstLinkAndTheLastOneSaySo) {
  Outages outages;
  EXPECT_TRUE(outages.begin("interface 2"));
  EXPECT_FALSE(outages.begin("interface 2"));
  EXPECT_TRUE(outages.begin("interface 2 to host7")) << "another cause";
  EXPECT_FALSE(outages.end("interface 2")) << "another link is without it still";
  EXPECT_TRUE(outages.end("interface 2"));
  EXPECT_TRUE(outages.begin("interface 2")) << "once more";
  EXPECT_FALSE(outages.end("interface 3")) << "nobody has lost that";
}

}  // namespace
}  // namespace slime::test
