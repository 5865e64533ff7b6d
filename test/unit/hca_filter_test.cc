// The list of ports to use. NCCL, "NCCL_IB_HCA": "^=mlx5_3" is all but the one of that name, and
// "=mlx5_0:1,mlx5_1:1" two ports; without "=", names are prefixes.
#include "transports/hca_filter.h"

#include <gtest/gtest.h>

namespace slime {
namespace {

bool uses(const char* list, const char* device, int port = 1) {
  return HcaFilter(list).lets_through(device, port);
}

TEST(HcaFilter, AnEmptyListLetsAllThrough) {
  EXPECT_TRUE(uses("", "mlx5_0"));
  for (const char* const list : {"^", "=", "^=", ",", ",,", "^,"}) {
    EXPECT_TRUE(uses(list, "mlx5_0")) << list;
  }
}

TEST(HcaFilter, NamesArePrefixes) {
  EXPECT_TRUE(uses("mlx5", "mlx5_0"));
  EXPECT_TRUE(uses("mlx5_1", "mlx5_10"));
  EXPECT_TRUE(uses("mlx5_1", "mlx5_1"));
  EXPECT_FALSE(uses("mlx5_1", "mlx5_0"));
  EXPECT_FALSE(uses("mlx5_10", "mlx5_1")) << "the device is a prefix of the name";
  EXPECT_FALSE(uses("lx5", "mlx5_0"));
}

TEST(HcaFilter, AnEqualsSignMakesThemWholeNames) {
  EXPECT_TRUE(uses("=mlx5_1", "mlx5_1"));
  EXPECT_FALSE(uses("=mlx5_1", "mlx5_10"));
  EXPECT_FALSE(uses("=mlx5", "mlx5_1"));
}

TEST(HcaFilter, ACaretExcludes) {
  EXPECT_FALSE(uses("^mlx5_1", "mlx5_1"));
  EXPECT_FALSE(uses("^mlx5_1", "mlx5_10"));
  EXPECT_TRUE(uses("^mlx5_1", "mlx5_0"));
}

TEST(HcaFilter, BothSignsExcludeWholeNames) {
  EXPECT_FALSE(uses("^=mlx5_1", "mlx5_1"));
  EXPECT_TRUE(uses("^=mlx5_1", "mlx5_10"));
}

// As in NCCL, which looks for the caret first.
TEST(HcaFilter, ACaretAfterTheEqualsSignBelongsToTheName) {
  EXPECT_FALSE(uses("=^mlx5_1", "mlx5_1"));
  EXPECT_FALSE(uses("=^mlx5_1", "mlx5_0"));
}

TEST(HcaFilter, APortOfADevice) {
  EXPECT_TRUE(uses("mlx5_0:1", "mlx5_0", 1));
  EXPECT_FALSE(uses("mlx5_0:1", "mlx5_0", 2));
  EXPECT_TRUE(uses("mlx5_0", "mlx5_0", 2)) << "without one: any";
  EXPECT_TRUE(uses("mlx5:2", "mlx5_7", 2)) << "also of a prefix";
  EXPECT_FALSE(uses("=mlx5_0:1", "mlx5_0", 2));
  EXPECT_FALSE(uses("^mlx5_0:1", "mlx5_0", 1));
  EXPECT_TRUE(uses("^mlx5_0:1", "mlx5_0", 2));
}

TEST(HcaFilter, AListIsAnyOfItsItems) {
  const HcaFilter filter("=mlx5_0:1,mlx5_2,bnxt_re1:2");
  EXPECT_TRUE(filter.lets_through("mlx5_0", 1));
  EXPECT_FALSE(filter.lets_through("mlx5_0", 2));
  EXPECT_FALSE(filter.lets_through("mlx5_1", 1));
  EXPECT_TRUE(filter.lets_through("mlx5_2", 1));
  EXPECT_TRUE(filter.lets_through("bnxt_re1", 2));
  EXPECT_FALSE(filter.lets_through("bnxt_re1", 1));
}

TEST(HcaFilter, ASignStandsForTheWholeList) {
  const HcaFilter filter("^=mlx5_0,mlx5_2");
  EXPECT_FALSE(filter.lets_through("mlx5_0", 1));
  EXPECT_FALSE(filter.lets_through("mlx5_2", 1));
  EXPECT_TRUE(filter.lets_through("mlx5_20", 1));
}

TEST(HcaFilter, ItemsWithoutANameAreSkipped) {
  EXPECT_TRUE(uses(",mlx5_0,", "mlx5_0"));
  EXPECT_FALSE(uses(",mlx5_0,,", "mlx5_1"));
  EXPECT_FALSE(uses(":1,mlx5_0", "mlx5_1"));
}

TEST(HcaFilter, APortThatIsNoNumberIsAny) {
  for (const char* const list : {"mlx5_0:", "mlx5_0:x", "mlx5_0:99999999999"}) {
    EXPECT_TRUE(uses(list, "mlx5_0", 1)) << list;
    EXPECT_TRUE(uses(list, "mlx5_0", 2)) << list;
    EXPECT_FALSE(uses(list, "mlx5_1", 1)) << list;
  }
}

}  // namespace
}  // namespace slime
