// The debugging modes.
#include <cmath>
#include <cstdlib>

#include "test/aggregation/support.h"
#include "test/support/local_switch.h"

namespace slime::aggregation {
namespace {

Options in_mode(Mode mode, uint32_t ranks) {
  Options options;
  options.ranks = ranks;
  options.mode = mode;
  return options;
}

class Modes : public testing::Test {
 protected:
  std::unique_ptr<Context> open(const Options& options) {
    std::unique_ptr<Context> context;
    EXPECT_OK(Context::open(options, &context));
    return context;
  }
  LogCapture log_;
};

TEST_F(Modes, DummyAddsOwnDataOnceForEveryRank) {
  for (const uint32_t ranks : {1u, 3u, 32u}) {
    Options options = in_mode(Mode::kDummy, ranks);
    options.rank = ranks - 1;
    const auto context = open(options);
    ASSERT_NE(context, nullptr);
    for (const DataType type : kAllTypes) {
      std::vector<std::byte> send(40'000 * 8), receive(send.size());
      for (size_t i = 0; i < 40'000; ++i) put(type, send.data(), i, static_cast<int>(i % 4));
      EXPECT_OK(context->all_reduce({send.data(), receive.data(), 40'000, type}, 20));
      size_t wrong = 0;
      for (size_t i = 0; i < 40'000; ++i) {
        wrong += get(type, receive.data(), i) != static_cast<int>(ranks * (i % 4));
      }
      EXPECT_EQ(wrong, 0u) << name_of(type) << ", " << ranks << " ranks";
    }
    const Statistics statistics = context->statistics();
    EXPECT_EQ(statistics.sent, statistics.results + statistics.retransmitted);
    EXPECT_EQ(statistics.send_calls, 0u) << "there is no network";
  }
  EXPECT_EQ(log_.count(LogLevel::kWarning, "debugging mode dummy"), 3u) << log_.text();
}

// NaN and infinities, numbers far apart in a block: the rounds that these take.
TEST_F(Modes, DummyTakesAllRoundsOfTheProtocol) {
  const auto context = open(in_mode(Mode::kDummy, 2));
  ASSERT_NE(context, nullptr);
  std::vector<float> data(5000, 1.0f);
  data[7] = INFINITY;
  for (size_t i = 1000; i < 5000; ++i) data[i] = i % 400 < 200 ? 1e-20f : 1e20f;
  EXPECT_OK(context->all_reduce({data.data(), data.data(), data.size()}, 20));
  EXPECT_EQ(data[0], 2.0f);
  EXPECT_EQ(data[7], INFINITY);
  EXPECT_GT(context->statistics().flag_rounds, 0u);
}

TEST_F(Modes, BypassLeavesIntegersRightAndPassesFloatsOn) {
  const LocalSwitch local;
  Options options = options_for(2, local.address());
  options.mode = Mode::kBypass;
  Group group(options);
  ASSERT_TRUE(group.well());
  group.each([](Context& context, uint32_t rank) {
    std::vector<int32_t> whole(3000, static_cast<int32_t>(rank + 1));
    EXPECT_OK(context.all_reduce({whole.data(), whole.data(), 3000, DataType::kInt32}));
    EXPECT_EQ(whole, std::vector<int32_t>(3000, 3));
    // The other rank's zeros add nothing: the bits come back as they are, without rounding.
    std::vector<float> data(3001, rank == 0 ? 1e-30f : 0.0f);
    data[0] = rank == 0 ? 3e38f : 0.0f;
    EXPECT_OK(context.all_reduce({data.data(), data.data(), 3001}));
    EXPECT_EQ(data[0], 3e38f);
    EXPECT_EQ(data[3000], 1e-30f);
    for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
      std::vector<uint16_t> half(777, rank == 0 ? 0x4321 : 0);
      EXPECT_OK(context.all_reduce({half.data(), half.data(), 777, type}));
      EXPECT_EQ(half, std::vector<uint16_t>(777, 0x4321));
    }
    EXPECT_EQ(context.statistics().exponent_rounds, 0u) << "nothing is scaled";
    expect_fails(context.all_reduce({data.data(), data.data(), 1, DataType::kFloat32, Op::kMin}),
                 Code::kUnsupported, "integers only");
  });
  EXPECT_EQ(log_.count(LogLevel::kWarning, "sums of floats mean nothing"), 2u) << log_.text();
}

TEST_F(Modes, InstantTouchesNothing) {
  const auto context = open(in_mode(Mode::kInstant, 4));
  ASSERT_NE(context, nullptr);
  const std::vector<float> send(1000, 3);
  std::vector<float> receive(1000, 5);
  EXPECT_OK(context->all_reduce({send.data(), receive.data(), 1000}));
  Request request;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_OK(context->all_reduce_async({send.data(), receive.data(), 1000}, &request));
  }
  bool done = false;
  EXPECT_OK(context->test(request, &done));
  EXPECT_TRUE(done);
  EXPECT_EQ(receive, std::vector<float>(1000, 5));
  EXPECT_EQ(context->statistics().operations, 1001u);
  EXPECT_EQ(context->statistics().sent, 0u);
  expect_fails(context->all_reduce({nullptr, receive.data(), 1}), Code::kInvalid, "NULL");
  EXPECT_EQ(log_.count(LogLevel::kWarning, "nothing is computed"), 1u) << log_.text();
}

TEST_F(Modes, ComeFromTheEnvironmentToo) {
  setenv("NCCL_SLIME_DEBUG_MODE", "instant", 1);
  EXPECT_NE(open(in_mode(Mode::kNormal, 4)), nullptr);
  setenv("NCCL_SLIME_DEBUG_MODE", "fast", 1);
  std::unique_ptr<Context> context;
  expect_fails(Context::open(in_mode(Mode::kNormal, 1), &context), Code::kConfig,
               "NCCL_SLIME_DEBUG_MODE=\"fast\"");
  setenv("NCCL_SLIME_DEBUG_MODE", "normal", 1);
  expect_fails(Context::open(in_mode(static_cast<Mode>(9), 1), &context), Code::kInvalid,
               "no mode 9");
  unsetenv("NCCL_SLIME_DEBUG_MODE");
  EXPECT_EQ(log_.count(LogLevel::kWarning, "debugging mode instant, rank 0 of 4"), 1u);
}

}  // namespace
}  // namespace slime::aggregation
