// The plans of all ranks, played against each other: every message is as long as the receiver
// expects, nothing deadlocks, and each rank's part is counted exactly once.
#include "tools/perf/collective/plan.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>

namespace slime::perf {
namespace {

// An element counts, in 8 bits per rank, how often the part of each rank is in it.
using Element = uint64_t;
constexpr size_t kElement = sizeof(Element);

struct World {
  Shape shape;
  BufferSizes sizes;
  std::vector<std::vector<Element>> inputs, outputs;
};

struct Message {
  std::vector<Element> data;
};

// One flow of one rank, with its queues to and from the neighbours.
struct Player {
  int rank = 0;
  Flow flow;
  size_t step = 0;
};

using Queues = std::map<std::tuple<int, int, int>, std::deque<Message>>;  // from, to, channel

Element own_part(int rank, size_t index) {
  return (uint64_t{1} << (8 * rank)) + (index << 32 << 24);  // the top byte tells places apart
}

Player* play_step(World* world, Player* player, Queues* queues) {
  const Step& step = player->flow.steps[player->step];
  auto& input = world->inputs[static_cast<size_t>(player->rank)];
  auto& output = world->outputs[static_cast<size_t>(player->rank)];
  const size_t count = step.bytes / kElement;
  const size_t in = step.input_offset / kElement, out = step.output_offset / kElement;
  std::vector<Element> data;
  if (step.receive_into != Place::kNowhere) {
    auto& queue = (*queues)[{player->flow.receive_peer, player->rank, player->flow.channel}];
    if (queue.empty()) return nullptr;
    data = queue.front().data;
    queue.pop_front();
    EXPECT_EQ(data.size(), count) << "message of another length than the receiver expects";
    if (step.receive_into == Place::kOutput) {
      std::copy(data.begin(), data.end(), output.begin() + static_cast<ptrdiff_t>(out));
    }
  } else if (count > 0) {
    EXPECT_LE(in + count, input.size());
    data.assign(&input[in], &input[in] + count);
  }
  if (step.reduce) {
    for (size_t i = 0; i < count; ++i) data[i] += input[in + i] & 0x00ffffffffffffff;
  }
  if (step.store) {
    EXPECT_LE(out + count, output.size());
    std::copy(data.begin(), data.end(), output.begin() + static_cast<ptrdiff_t>(out));
  }
  if (step.send_from != Place::kNowhere) {
    if (step.send_from == Place::kFifo) {
      EXPECT_LE(message_bytes(player->flow.geometry.protocol, step.bytes),
                player->flow.geometry.slot_bytes);
    }
    if (step.send_from == Place::kOutput && count > 0)
      data.assign(&output[out], &output[out] + count);
    (*queues)[{player->rank, player->flow.send_peer, player->flow.channel}].push_back({data});
  }
  ++player->step;
  return player;
}

void play(World* world) {
  std::vector<Player> players;
  for (int rank = 0; rank < world->shape.ranks; ++rank) {
    Shape shape = world->shape;
    shape.rank = rank;
    for (Flow& flow : make_plan(shape, world->sizes)) players.push_back({rank, std::move(flow)});
  }
  Queues queues;
  for (bool moved = true; moved;) {
    moved = false;
    for (Player& player : players) {
      while (player.step < player.flow.steps.size() &&
             play_step(world, &player, &queues) != nullptr) {
        moved = true;
      }
    }
  }
  for (const Player& player : players) {
    ASSERT_EQ(player.step, player.flow.steps.size()) << "rank " << player.rank << " waits for ever";
  }
  for (const auto& [key, queue] : queues) ASSERT_TRUE(queue.empty()) << "a message nobody receives";
}

World make_world(Collective collective, int ranks, size_t elements, Protocol protocol, bool direct,
                 int channels) {
  World world;
  world.sizes.fifo = {16 << 10, 15 << 10, 64 << 10};
  world.sizes.p2p_chunk = 8 << 10;
  const Counts counts = counts_of(collective, elements, kElement, ranks);
  world.shape = {.collective = collective,
                 .type = DataType::kUint64,
                 .count = counts.param,
                 .root = ranks - 1,
                 .ranks = ranks,
                 .channels = channels,
                 .protocol = protocol,
                 .direct = direct};
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Element> input(counts.send);
    for (size_t i = 0; i < input.size(); ++i) input[i] = own_part(rank, i);
    world.inputs.push_back(std::move(input));
    world.outputs.emplace_back(counts.receive, ~Element{0});
  }
  return world;
}

// By definition of the collective (NCCL user guide, "Collective Operations").
Element expected(const World& world, int rank, size_t index) {
  const int ranks = world.shape.ranks;
  const size_t count = world.shape.count;
  Element all = 0;
  for (int one = 0; one < ranks; ++one) all += uint64_t{1} << (8 * one);
  const auto place = [](size_t at) { return at << 32 << 24; };
  switch (world.shape.collective) {
    case Collective::kAllReduce:
      return all + place(index);
    case Collective::kReduceScatter:
      return all + place(static_cast<size_t>(rank) * count + index);
    case Collective::kAllGather:
      return own_part(static_cast<int>(index / count), index % count);
    case Collective::kBroadcast:
      return own_part(world.shape.root, index);
    case Collective::kAllToAll:
      return own_part(static_cast<int>(index / count),
                      static_cast<size_t>(rank) * count + index % count);
    case Collective::kSendRecv:
      return own_part((rank + ranks - 1) % ranks, index);
  }
  return 0;
}

class PlanTest : public testing::TestWithParam<std::tuple<Collective, int>> {};

TEST_P(PlanTest, EveryPartArrivesOnceEverywhere) {
  const auto [collective, ranks] = GetParam();
  for (const size_t elements : {0u, 1u, 3u, 16u, 17u, 1000u, 20001u}) {
    for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      for (const bool direct : {false, true}) {
        for (const int channels : {1, 3}) {
          World world = make_world(collective, ranks, elements, protocol, direct, channels);
          play(&world);
          ASSERT_FALSE(HasFatalFailure());
          for (int rank = 0; rank < ranks; ++rank) {
            const auto& output = world.outputs[static_cast<size_t>(rank)];
            for (size_t i = 0; i < output.size(); ++i) {
              ASSERT_EQ(output[i], expected(world, rank, i))
                  << "rank " << rank << " element " << i << " of " << elements << ", "
                  << name_of(protocol) << (direct ? ", direct" : "") << ", " << channels;
            }
          }
        }
      }
    }
  }
}

// The rank that holds the top byte of an element's place must not be counted: at most 7 ranks.
INSTANTIATE_TEST_SUITE_P(
    Collectives, PlanTest,
    testing::Combine(testing::Values(Collective::kAllReduce, Collective::kAllGather,
                                     Collective::kReduceScatter, Collective::kBroadcast,
                                     Collective::kAllToAll, Collective::kSendRecv),
                     testing::Values(2, 3, 4, 7)),
    [](const auto& info) {
      return std::string(name_of(std::get<0>(info.param))) + "_" +
             std::to_string(std::get<1>(info.param));
    });

TEST(PlanTest, RingMessagesHaveTheSizesOfNccl) {
  Shape shape;
  shape.count = 16 << 20;  // 64 MiB of floats
  const auto flows = make_plan(shape, BufferSizes());
  ASSERT_EQ(flows.size(), 1u);
  // 16 loops of two chunks of 2 MiB; three steps of a chunk for two ranks; two slices of 1 MiB.
  EXPECT_EQ(flows[0].steps.size(), 16u * 3 * 2);
  for (const Step& step : flows[0].steps) EXPECT_EQ(step.bytes, 1u << 20);
  EXPECT_EQ(flows[0].geometry.depth, 4);
}

TEST(PlanTest, ShortSimpleChunksStillMakeTwoMessages) {
  Shape shape;
  shape.count = 2;
  const auto flows = make_plan(shape, BufferSizes());
  ASSERT_EQ(flows[0].steps.size(), 6u);
  EXPECT_EQ(flows[0].steps[1].bytes, 0u) << "NCCL sends the empty second slice too";
}

TEST(PlanTest, CountsAreThoseOfNcclTests) {
  // 1000 floats over 3 ranks: parts of 332, a multiple of 16 bytes.
  const Counts gather = counts_of(Collective::kAllGather, 1000, 4, 3);
  EXPECT_EQ(gather.param, 332u);
  EXPECT_EQ(gather.receive, 996u);
  const Counts scatter = counts_of(Collective::kReduceScatter, 1000, 8, 3);
  EXPECT_EQ(scatter.param, 332u);
  EXPECT_EQ(scatter.send, 996u);
  EXPECT_EQ(counts_of(Collective::kAllReduce, 1000, 4, 3).param, 1000u);
  EXPECT_EQ(counts_of(Collective::kAllToAll, 2, 4, 2).param, 0u);
}

TEST(PlanTest, BusBandwidthFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kSendRecv, 4), 1);
  const Counts counts = counts_of(Collective::kAllGather, 1000, 4, 2);
  EXPECT_EQ(algorithm_bytes(Collective::kAllGather, counts, 4, 2), 4000u);
}

}  // namespace
}  // namespace slime::perf
