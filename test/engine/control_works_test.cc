#include "link/control_works.h"

#include <gtest/gtest.h>

#include <vector>

#include "link/immediate.h"

namespace slime {
namespace {

TEST(ControlWorks, EachEndsOnce) {
  ControlWorks works;
  const auto first = works.begin(10), second = works.begin(20);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(works.end(*second), 20u);
  EXPECT_EQ(works.end(*second), std::nullopt) << "its completion came twice";
  EXPECT_EQ(works.end(*first), 10u);
  const auto again = works.begin(30);
  ASSERT_TRUE(again);
  EXPECT_EQ(works.end(*first), std::nullopt) << "the place has another work now";
  EXPECT_EQ(works.end(*again), 30u);
}

TEST(ControlWorks, HasAPlaceForEachErrandOfAllRails) {
  ControlWorks works;
  std::vector<ControlWorks::Place> places;
  while (const auto place = works.begin(1)) places.push_back(*place);
  EXPECT_EQ(places.size(), kControlRoom);
  for (const auto& place : places) EXPECT_EQ(works.end(place), 1u);
  for (const auto& place : places) {
    EXPECT_EQ(works.end(place), std::nullopt);
    EXPECT_LE(place.index, UINT16_MAX);
  }
  works.clear();
  EXPECT_TRUE(works.begin(1));
}

// The first place has nearly all works, some millions a minute on a busy link.
TEST(ControlWorks, OnePlaceMayBeUsedForEver) {
  ControlWorks works;
  for (uint32_t i = 0; i < 30'000'000; ++i) {
    const auto place = works.begin(i);
    const WorkId sent{WorkId::Kind::kControl, 1, place->index, place->generation};
    const WorkId back = WorkId::unpack(sent.pack());
    ASSERT_EQ(works.end({back.index, back.generation}), i);
  }
}

TEST(ControlWorks, WhatNeverBeganDoesNotEnd) {
  ControlWorks works;
  EXPECT_EQ(works.end({0, 0}), std::nullopt);
  EXPECT_EQ(works.end({kControlRoom, 0}), std::nullopt);
  EXPECT_EQ(works.end({UINT16_MAX, 1}), std::nullopt);
}

}  // namespace
}  // namespace slime
