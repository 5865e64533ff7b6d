// What a channel, and the rail of a link that it is of, take of the heap. Not counted: what the
// driver of a real NIC keeps for its queues.
#include <cstdio>
#include <utility>

#include "link/rail/link_rail.h"
#include "test/support/heap_bytes.h"
#include "test/verbs/crowd.h"

namespace slime::verbs {
namespace {

// Of connected channels, half of them on a poller: the mean, with what the fake NIC keeps of them.
size_t channel_bytes(uint32_t depth) {
  constexpr uint64_t kPairs = 8;
  Crowd crowd(1, depth);  // what a rail and a queue allocate once
  const size_t bytes = test::heap_bytes_of([&] {
    for (uint64_t tag = 1; tag <= kPairs; ++tag) crowd.add(tag, depth);
  });
  return bytes / (2 * kPairs);
}

size_t rail_bytes(uint32_t depth) {
  TestNics world;
  TestPair pair(world);
  if (!pair.connect()) return 0;
  std::unique_ptr<LinkRail> rail;
  return test::heap_bytes_of([&] {
    const PostPolicy policy = PostQueue::fit({}, world.left->caps(), depth);
    rail = std::make_unique<LinkRail>(LinkChannel{std::move(pair.left), 0, 1000}, world.left.get(),
                                      policy, 0, 0);
  });
}

TEST(VerbsChannelSize, OfALinkOfSmallDepthIs32KilobytesAtMost) {
  for (const uint32_t depth : {256U, 64U, 32U, 16U}) {
    const size_t channel = channel_bytes(depth), rail = rail_bytes(depth);
    std::printf("depth %3u: channel %5zu bytes, its rail of the link %5zu, together %5zu\n", depth,
                channel, rail, channel + rail);
    if (!test::kHeapIsExact || depth > 32) continue;
    EXPECT_LE(channel + rail, 32U << 10);
  }
}

// A channel on a poller keeps what another has read for it, and no memory after that.
TEST(VerbsChannelSize, IsAsBeforeAfterABurst) {
  Crowd crowd(1, 256);
  ASSERT_EQ(crowd.pairs.size(), 1U);
  const auto burst = [&] {
    ASSERT_NO_FATAL_FAILURE(crowd.arrive(0, 200));
    EXPECT_THAT(crowd.names(), IsEmpty()) << "it is not armed";
    EXPECT_EQ(crowd.take(0), 200U);
  };
  const size_t before = test::heap_bytes();
  ASSERT_NO_FATAL_FAILURE(burst());
  const size_t bytes = test::heap_bytes() - before;
  EXPECT_LE(static_cast<ptrdiff_t>(bytes), 4096);
}

}  // namespace
}  // namespace slime::verbs
