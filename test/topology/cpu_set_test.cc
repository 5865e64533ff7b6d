#include <gtest/gtest.h>

#include <thread>

#include "base/machine/cpu_set.h"

namespace slime {
namespace {

CpuSet set(const char* list) { return CpuSet::parse(list).value(); }

TEST(CpuSets, AreReadAndWrittenAsTheKernelDoes) {
  for (const char* list : {"", "0", "0-3", "0-3,8", "0,2,4,6", "7,100-8191"}) {
    const auto parsed = CpuSet::parse(list);
    ASSERT_TRUE(parsed) << list;
    EXPECT_EQ(parsed->to_string(), list);
  }
  EXPECT_EQ(set("8,0-1,1-3").to_string(), "0-3,8");
  EXPECT_EQ(set("0-3,8").count(), 5u);
  EXPECT_EQ(set("5,9").first(), 5u);
  EXPECT_FALSE(set("").first());
  EXPECT_TRUE(set("5").contains(5) && !set("5").contains(4) && !set("5").contains(CpuSet::kMost));
}

TEST(CpuSets, WhatIsMalformedIsNoSet) {
  for (const char* list : {",", "0,", ",0", "0,,1", "-", "-1", "1-", "3-1", "a", "0-b", " 0", "0 ",
                           "0-3-5", "8192", "0-8192", "99999999999999999999"}) {
    EXPECT_FALSE(CpuSet::parse(list)) << list;
  }
}

TEST(CpuSets, Operations) {
  EXPECT_EQ(set("0-3") & set("2-5"), set("2-3"));
  EXPECT_EQ(set("0-3") | set("5"), set("0-3,5"));
  EXPECT_TRUE((set("0") & set("1")).empty());
  EXPECT_TRUE(set("1-2").is_within(set("0-3")));
  EXPECT_FALSE(set("1-4").is_within(set("0-3")));
}

TEST(CpuSets, OfThisThread) {
  const CpuSet before = CpuSet::of_this_thread();
  ASSERT_FALSE(before.empty());
  const CpuSet one = set(std::to_string(before.first().value()).c_str());
  std::thread([&] {
    EXPECT_TRUE(one.apply_to(pthread_self()));
    EXPECT_EQ(CpuSet::of_this_thread(), one);
    EXPECT_FALSE(CpuSet().apply_to(pthread_self()));
    EXPECT_EQ(CpuSet::of_this_thread(), one);
  }).join();
  EXPECT_EQ(CpuSet::of_this_thread(), before);
}

}  // namespace
}  // namespace slime
