#include "peer/handle_table.h"

#include <gtest/gtest.h>

#include <thread>

namespace slime {
namespace {

TEST(HandleTable, FindsWhatWasAddedUntilItIsRemoved) {
  HandleTable<int> table(HandleKind::kRegion);
  const uint64_t one = table.add(std::make_shared<int>(1)),
                 two = table.add(std::make_shared<int>(2));
  EXPECT_NE(one, two);
  EXPECT_EQ(*table.find(one), 1);
  EXPECT_EQ(*table.find(two), 2);
  EXPECT_EQ(*table.remove(one), 1);
  EXPECT_EQ(table.find(one), nullptr);
  EXPECT_EQ(table.remove(one), nullptr);
  EXPECT_EQ(table.all().size(), 1U);
}

TEST(HandleTable, AnOldHandleFindsNothingInAPlaceThatIsUsedAgain) {
  HandleTable<int> table(HandleKind::kRegion);
  std::vector<uint64_t> old;
  for (int i = 0; i < 100; ++i) {
    old.push_back(table.add(std::make_shared<int>(i)));
    EXPECT_EQ(*table.find(old.back()), i);
    for (size_t k = 0; k + 1 < old.size(); ++k) EXPECT_EQ(table.find(old[k]), nullptr);
    (void)table.remove(old.back());
  }
}

TEST(HandleTable, AHandleOfAnotherKindFindsNothing) {
  HandleTable<int> regions(HandleKind::kRegion), peers(HandleKind::kPeer);
  const uint64_t region = regions.add(std::make_shared<int>(1));
  (void)peers.add(std::make_shared<int>(2));
  EXPECT_EQ(peers.find(region), nullptr);
  for (const uint64_t nonsense :
       {uint64_t{0}, ~uint64_t{0}, region + 1, region ^ uint64_t{1} << 40}) {
    EXPECT_EQ(regions.find(nonsense), nullptr) << nonsense;
    EXPECT_EQ(regions.remove(nonsense), nullptr);
  }
}

// What was found lives on.
TEST(HandleTable, ThreadsMayRemoveWhatOthersUse) {
  HandleTable<int> table(HandleKind::kRequest);
  std::thread other([&] {
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t handle = table.add(std::make_shared<int>(7));
      EXPECT_NE(table.remove(handle), nullptr);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    for (const auto& object : table.all()) EXPECT_EQ(*object, 7);
  }
  other.join();
}

}  // namespace
}  // namespace slime
