// The rounds of one chunk, without packets: contributions of a few ranks are added up here.
#include "collnet/worker/stages.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "collnet/worker/job_route.h"

namespace slime {
namespace {

constexpr uint32_t kLanes = 16, kRanks = 2;
constexpr sap::Contributors kAll = sap::all_ranks(kRanks);
using Lanes = std::array<std::byte, 4 * kLanes>;

// One rank's side of a slot.
struct Rank {
  Rank(uint32_t rank, DataType type, ReduceOp op, uint32_t formats, std::vector<std::byte> elements)
      : index(rank),
        payload(type, op, kLanes, kRanks, number::HalfBits::k32, formats),
        data(std::move(elements)) {
    slot.packet = packet_bytes.data();
    slot.flags = flags.data();
    slot.earlier = earlier.data();
    slot.finite = scratch.data();
    restart(0);
  }
  void restart(uint64_t number) {
    chunk = {.number = number,
             .ticket = 0,
             .siblings = 1,
             .payload = &payload,
             .from = data.data(),
             .to = data.data(),
             .count = static_cast<uint32_t>(data.size() / element_bytes(payload.type()))};
  }
  // `next`: what this rank knows of the chunk after this one.
  void begin(const Chunk* next = nullptr, bool guesses = true) {
    slot.state.stage = next_stage(slot.state, chunk, guesses);
    slot.sent = JobRoute{}.header(sap::Type::kContribution, 0, 0);
    contribute(&slot, chunk, next, sap::factor(index));
  }
  const uint32_t index;
  const Payload payload;
  std::vector<std::byte> data;
  std::array<std::byte, sap::kHeaderBytes + 4 * kLanes> packet_bytes{};
  Lanes flags{}, earlier{}, scratch{};
  Slot slot;
  Chunk chunk;
};

// What a switch makes of 32-bit lanes.
struct Result {
  sap::Header header;
  Lanes lanes{};
  std::span<const std::byte> payload() const {
    return std::span(lanes).first(4 * size_t{header.lanes});
  }
};
Result reduced(const Rank& one, const Rank& other) {
  Result result{.header = one.slot.sent};
  result.header.type = sap::Type::kResult;
  EXPECT_EQ(one.slot.sent.lanes, other.slot.sent.lanes);
  EXPECT_EQ(one.slot.sent.cookie, other.slot.sent.cookie);
  for (uint32_t i = 0; i < one.slot.sent.lanes; ++i) {
    const uint32_t a = sap::wire::get32(&one.slot.lanes()[4 * i]);
    const uint32_t b = sap::wire::get32(&other.slot.lanes()[4 * i]);
    const bool is_signed = one.slot.sent.format == sap::Format::kI32;
    const bool less = is_signed ? static_cast<int32_t>(a) < static_cast<int32_t>(b) : a < b;
    const uint32_t max = less ? b : a;
    const uint32_t all[] = {a + b, less ? a : b, max, a | b};
    sap::wire::put32(&result.lanes[4 * i], all[static_cast<int>(one.slot.sent.op)]);
  }
  for (int i : {0, 1}) {
    result.header.exponents[i] = std::max(one.slot.sent.exponents[i], other.slot.sent.exponents[i]);
  }
  result.header.special = one.slot.sent.special | other.slot.sent.special;
  result.header.check = one.slot.sent.check + other.slot.sent.check;
  return result;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}
template <typename T>
T first_of(const Rank& rank) {
  T value;
  std::memcpy(&value, rank.data.data(), sizeof value);
  return value;
}

// A pair of ranks with the same elements, and what its rounds were.
struct Pair {
  template <typename T>
  Pair(DataType type, const std::vector<T>& a, const std::vector<T>& b,
       ReduceOp op = ReduceOp::kSum, uint32_t formats = sap::kWordFormats)
      : one(0, type, op, formats, bytes_of(a)), other(1, type, op, formats, bytes_of(b)) {}

  Outcome round() {
    one.begin();
    other.begin();
    EXPECT_EQ(one.slot.state.stage, other.slot.state.stage);
    stages.push_back(one.slot.state.stage);
    const Result result = reduced(one, other);
    Outcome outcome{};
    for (Rank* const rank : {&one, &other}) {
      EXPECT_TRUE(is_intact(rank->slot, rank->chunk, result.header, result.payload(), kAll));
      outcome = finish(&rank->slot, rank->chunk, result.header, result.payload());
    }
    return outcome;
  }
  Outcome rounds() {
    for (int i = 0; i < 10; ++i) {
      const Outcome outcome = round();
      if (outcome == Outcome::kDelivered) return outcome;
    }
    return Outcome::kMoreRounds;
  }

  Rank one, other;
  std::vector<Stage> stages;
};
using Stages = std::vector<Stage>;

TEST(Stages, IntegersTakeOneRound) {
  Pair pair(DataType::kInt32, std::vector<int32_t>{3, -4}, std::vector<int32_t>{7, 1});
  EXPECT_EQ(pair.round(), Outcome::kDelivered);
  EXPECT_EQ(pair.stages, Stages{Stage::kData});
  EXPECT_EQ(first_of<int32_t>(pair.one), 10);
  EXPECT_EQ(pair.one.data, pair.other.data);
  EXPECT_EQ(pair.one.slot.sent.special, sap::special::kUnknown) << "nobody knows what comes next";
}

TEST(Stages, FloatsAgreeOnExponentsFirst) {
  Pair pair(DataType::kFloat32, std::vector<float>{1.5F}, std::vector<float>{2.25F});
  EXPECT_EQ(pair.rounds(), Outcome::kDelivered);
  EXPECT_EQ(pair.stages, (Stages{Stage::kExponents, Stage::kData}));
  EXPECT_EQ(first_of<float>(pair.one), 3.75F);
}

TEST(Stages, ExponentsOfTheNextChunkTravelWithTheData) {
  Pair pair(DataType::kFloat32, std::vector<float>{1}, std::vector<float>{2});
  EXPECT_EQ(pair.round(), Outcome::kMoreRounds);
  const Chunk next = pair.one.chunk;
  pair.one.begin(&next);
  pair.other.begin(&next);
  EXPECT_EQ(pair.one.slot.sent.special & sap::special::kUnknown, 0);
  const Result result = reduced(pair.one, pair.other);
  EXPECT_EQ(finish(&pair.one.slot, pair.one.chunk, result.header, result.payload()),
            Outcome::kDelivered);
  EXPECT_TRUE(pair.one.slot.state.agreed);
  EXPECT_EQ(next_stage(pair.one.slot.state, next, true), Stage::kData);
}

TEST(Stages, NanAndInfinitiesTakeARoundOfFlags) {
  const float infinity = std::numeric_limits<float>::infinity();
  Pair pair(DataType::kFloat32, std::vector<float>{1, infinity, 2},
            std::vector<float>{3, 1, std::nanf("")});
  EXPECT_EQ(pair.rounds(), Outcome::kDelivered);
  EXPECT_EQ(pair.stages, (Stages{Stage::kExponents, Stage::kFlags, Stage::kData}));
  float sums[3];
  std::memcpy(sums, pair.one.data.data(), sizeof sums);
  EXPECT_EQ(sums[0], 4);
  EXPECT_EQ(sums[1], infinity);
  EXPECT_TRUE(std::isnan(sums[2]));
}

// Two rounds for exponents of elements, because bytes travel as words here, and a maximum travels
// twice: eight elements a round.
TEST(Stages, LostNumbersTakeFinerRounds) {
  std::vector<float> numbers(10, 1e20F);
  numbers[0] = 1;
  Pair pair(DataType::kFloat32, numbers, numbers);
  EXPECT_EQ(pair.rounds(), Outcome::kDelivered);
  EXPECT_EQ(pair.stages,
            (Stages{Stage::kExponents, Stage::kData, Stage::kFine, Stage::kFine, Stage::kData}));
  EXPECT_EQ(first_of<float>(pair.one), 2);
}

TEST(Stages, WideMaximaTakeTheirUpperWordsFirst) {
  const std::vector<int64_t> a{(int64_t{5} << 32) + 1}, b{(int64_t{5} << 32) + 9};
  Pair pair(DataType::kInt64, a, b, ReduceOp::kMax);
  EXPECT_EQ(pair.rounds(), Outcome::kDelivered);
  EXPECT_EQ(pair.stages, (Stages{Stage::kUpper, Stage::kData}));
  EXPECT_EQ(first_of<int64_t>(pair.one), b[0]);
}

// The third chunk of the same exponents is guessed; one of others is found out.
TEST(Stages, ExponentsThatStayedAreGuessed) {
  const std::vector<float> a{1.25F}, b{1.5F};
  Pair pair(DataType::kFloat32, a, b);
  const auto again = [&](float value) {
    pair.one.data = bytes_of(a);
    pair.other.data = bytes_of(std::vector<float>{value});
    pair.one.restart(1);
    pair.other.restart(1);
    pair.stages.clear();
  };
  for (int i = 0; i < 2; ++i) {
    again(1.5F);
    ASSERT_EQ(pair.rounds(), Outcome::kDelivered);
    EXPECT_EQ(pair.stages, (Stages{Stage::kExponents, Stage::kData}));
  }
  again(1.75F);
  EXPECT_EQ(pair.round(), Outcome::kDelivered);
  EXPECT_EQ(pair.stages, Stages{Stage::kGuess});
  EXPECT_EQ(first_of<float>(pair.one), 3);
  EXPECT_FALSE(pair.one.slot.state.agreed);

  again(64);
  EXPECT_EQ(pair.round(), Outcome::kWrongGuess);
  EXPECT_EQ(pair.round(), Outcome::kDelivered);
  EXPECT_EQ(pair.stages, (Stages{Stage::kGuess, Stage::kData}));
  EXPECT_EQ(first_of<float>(pair.one), 65.25F);
}

TEST(Stages, NothingIsGuessedAfterAMoveOrForLargeOperations) {
  ChunkState state;
  state.steady = true;
  const Payload payload(DataType::kFloat32, ReduceOp::kSum, kLanes, kRanks);
  Chunk chunk{.siblings = kMostGuessed, .payload = &payload};
  EXPECT_EQ(next_stage(state, chunk, true), Stage::kGuess);
  EXPECT_EQ(next_stage(state, chunk, false), Stage::kExponents);
  chunk.siblings = kMostGuessed + 1;
  EXPECT_EQ(next_stage(state, chunk, true), Stage::kExponents);
  chunk.siblings = 1;
  state.forget_exponents();
  EXPECT_EQ(next_stage(state, chunk, true), Stage::kExponents);
}

TEST(Stages, OneContributionTwiceInPlaceOfAnotherIsDamage) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
    Pair pair(DataType::kInt32, std::vector<int32_t>{3}, std::vector<int32_t>{4}, op);
    pair.one.begin();
    pair.other.begin();
    for (const Rank* const twice : {&pair.one, &pair.other}) {
      const Result result = reduced(*twice, *twice);
      for (const Rank* const rank : {&pair.one, &pair.other}) {
        EXPECT_FALSE(is_intact(rank->slot, rank->chunk, result.header, result.payload(), kAll));
      }
    }
  }
}

TEST(Stages, ResultsThatDoNotFitAreDamaged) {
  Pair pair(DataType::kInt32, std::vector<int32_t>{3}, std::vector<int32_t>{4});
  pair.one.begin();
  pair.other.begin();
  const Result right = reduced(pair.one, pair.other);
  const auto holds = [&](auto change) {
    Result result = right;
    change(result);
    return is_intact(pair.one.slot, pair.one.chunk, result.header, result.payload(), kAll);
  };
  EXPECT_TRUE(holds([](Result&) {}));
  EXPECT_FALSE(holds([](Result& r) { r.lanes[5] ^= std::byte{1}; }));
  EXPECT_FALSE(holds([](Result& r) { ++r.header.check; }));
  EXPECT_FALSE(holds([](Result& r) { r.header.op = sap::Op::kMax; }));
  EXPECT_FALSE(holds([](Result& r) { r.header.flags = sap::flag::kExponentsOnly; }));
  EXPECT_FALSE(holds([](Result& r) { r.header.special = 0; })) << "less than this rank said";
}

}  // namespace
}  // namespace slime
