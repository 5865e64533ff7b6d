// Where a shard's thread runs.
#include "switch/softswitch/shard_thread.h"

#include <gtest/gtest.h>

#include "switch/softswitch/udp_socket.h"

namespace slime::net {
namespace {

CpuSet of_shard(const CpuSet& near) {
  auto sockets =
      bind_udp_block(SocketAddress::parse("127.0.0.1:0").value(), 1, 0, ShardThread::kIdleUs);
  auto thread = ShardThread::start(std::move(sockets->front()), {.max_lanes = 8, .near = near});
  EXPECT_TRUE(thread) << thread.error().what;
  CpuSet seen;
  EXPECT_TRUE((*thread)->call([&seen](Shard&) { seen = CpuSet::of_this_thread(); }));
  return seen;
}

TEST(ShardThread, RunsNearItsNicAsFarAsTheProcessMay) {
  const CpuSet allowed = CpuSet::of_this_thread();
  const CpuSet first = CpuSet::parse(std::to_string(allowed.first().value())).value();
  const CpuSet elsewhere = CpuSet::parse("8191").value();
  EXPECT_EQ(of_shard(first | elsewhere), first);
  EXPECT_EQ(of_shard(elsewhere), allowed);
  EXPECT_EQ(of_shard(CpuSet()), allowed);
  EXPECT_EQ(CpuSet::of_this_thread(), allowed);
}

}  // namespace
}  // namespace slime::net
