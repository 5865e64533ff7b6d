// What a channel, and the rail of a link that it is of, take of the heap.
#include <cstdio>
#include <utility>

#include "link/rail/link_rail.h"
#include "test/support/heap_bytes.h"
#include "test/unit/tcp/support.h"

namespace slime::tcp {
namespace {

using test::heap_bytes_of;

constexpr uint32_t kDepthThatFits = test::kHeapIsExact ? 64 : 32;

struct Sizes {
  size_t channel, rail;  // connected; the LinkRail, without the channel
};

Sizes sizes_with(uint32_t depth) {
  const auto left = loopback_rail(), right = loopback_rail();
  const auto open = [&](TcpRail& rail, bool active) {
    auto channel = rail.open_channel({.active = active, .depth = depth});
    EXPECT_TRUE(channel) << channel.error().what;
    return std::move(*channel);
  };
  const auto warm_up = open(*left, true);  // what a rail allocates once
  Sizes sizes = {};
  std::unique_ptr<Channel> channel, peer = open(*right, false);
  sizes.channel = heap_bytes_of([&] {
    channel = open(*left, true);
    EXPECT_TRUE(eventually([&] {
      const Status one = channel->connect(peer->address());
      return peer->connect(channel->address()) == Status::kOk && one == Status::kOk;
    }));
  });
  std::unique_ptr<LinkRail> rail;
  sizes.rail = heap_bytes_of([&] {
    const PostPolicy policy = PostQueue::fit({}, left->caps(), depth);
    rail = std::make_unique<LinkRail>(LinkChannel{std::move(channel), 0, 1000}, left.get(), policy,
                                      0, 0);
  });
  return sizes;
}

TEST(ChannelSize, OfALinkOfSmallDepthIs32KilobytesAtMost) {
  for (const uint32_t depth : {0U, 64U, 32U, 16U}) {
    const Sizes sizes = sizes_with(depth);
    std::printf("depth %3u: channel %5zu bytes, its rail of the link %5zu, together %5zu\n",
                depth == 0 ? loopback_rail()->caps().send_queue_depth : depth, sizes.channel,
                sizes.rail, sizes.channel + sizes.rail);
    if (depth == 0 || depth > kDepthThatFits) continue;
    EXPECT_LE(sizes.channel + sizes.rail, 32U << 10);
  }
}

}  // namespace
}  // namespace slime::tcp
