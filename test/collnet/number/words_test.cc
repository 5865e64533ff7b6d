// Jobs on switches that add up 32-bit numbers only, or these and some other formats. The switches
// of the simulator refuse all packets of other formats.
#include <algorithm>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "collnet/payload/encoding.h"
#include "test/collnet/simulation/simulated_job.h"

namespace slime {
namespace {

using Op = ReduceOp;
using test::Job;
using test::pointers;

constexpr uint32_t kLanes = 40;  // 13 numbers of three words, and one word that none takes

template <typename T>
constexpr DataType type_of() {
  if (sizeof(T) == 1) return std::is_signed_v<T> ? DataType::kInt8 : DataType::kUint8;
  if (sizeof(T) == 4) return std::is_signed_v<T> ? DataType::kInt32 : DataType::kUint32;
  return std::is_signed_v<T> ? DataType::kInt64 : DataType::kUint64;
}

template <typename T>
T reduced(Op op, T one, T other) {
  using Bits = std::make_unsigned_t<T>;
  if (op == Op::kMin) return std::min(one, other);
  if (op == Op::kMax) return std::max(one, other);
  return static_cast<T>(static_cast<Bits>(static_cast<Bits>(one) + static_cast<Bits>(other)));
}

// The numbers at which carries and signs change, and their neighbours.
template <typename T>
T any_edge(std::mt19937_64& random) {
  const auto shift = static_cast<uint32_t>(random() % (8 * sizeof(T)));
  const uint64_t bits = (uint64_t{1} << shift) + random() % 3 - 1;
  return static_cast<T>(random() % 2 ? bits : ~bits);
}

template <typename T>
class WordsOfIntegers : public testing::Test {};
using Integers = testing::Types<int8_t, uint8_t, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(WordsOfIntegers, Integers);

TYPED_TEST(WordsOfIntegers, ResultsAreExact) {
  for (const std::vector<uint32_t>& leaves : {std::vector<uint32_t>{1}, {2}, {5}, {2, 3}, {32}}) {
    Job job({.leaves = leaves,
             .lanes = kLanes,
             .formats = sap::kWordFormats,
             .network = {.loss = 0.02, .duplication = 0.02, .jitter_ns = 100'000}});
    for (const Op op : {Op::kSum, Op::kMin, Op::kMax}) {
      for (const size_t count : {1, 12, 13, 14, 39, 40, 41, 500}) {
        auto buffers = job.template inputs<TypeParam>(count, any_edge<TypeParam>);
        std::vector<TypeParam> want = buffers[0];
        for (size_t rank = 1; rank < buffers.size(); ++rank) {
          for (size_t i = 0; i < count; ++i) want[i] = reduced(op, want[i], buffers[rank][i]);
        }
        ASSERT_TRUE(job.reduce(pointers(buffers), type_of<TypeParam>(), op));
        for (const auto& one : buffers) ASSERT_EQ(one, want) << count << " numbers";
      }
    }
  }
}

TEST(WordsOfSums, CarriesOf128Workers) {
  Job job({.leaves = {32, 32, 32, 32}, .lanes = kLanes, .formats = sap::kWordFormats});
  std::vector<std::vector<uint64_t>> buffers(128, std::vector<uint64_t>(100, ~uint64_t{0}));
  ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kUint64));
  for (const auto& one : buffers) ASSERT_EQ(one, std::vector<uint64_t>(100, uint64_t{0} - 128));
}

// number::kMaxWorkers of them, without as many simulated ones.
TEST(WordsOfSums, HaveRoomForAllContributors) {
  const uint64_t greatest = ~uint64_t{0};
  std::byte words[12];
  to_words(Encoding::kThreeWords, DataType::kUint64, reinterpret_cast<const std::byte*>(&greatest),
           1, words);
  for (const size_t at : {0, 4}) {
    EXPECT_LE(uint64_t{sap::wire::get32(words + at)} * number::kMaxWorkers, UINT32_MAX);
  }
}

// Large numbers beside small ones: rounds for exponents of single elements, whose bytes travel as
// words. The bits are those that a switch with all formats brings.
TEST(WordsOfFloats, TheSameBitsAsWithAllFormats) {
  for (const size_t count : {5, 20, 21, 40, 41, 80, 1000}) {
    std::vector<std::vector<float>> by_formats[2];
    for (const bool all : {true, false}) {
      Job job({.leaves = {3},
               .lanes = kLanes,
               .formats = all ? sap::kKnownFormats : sap::kWordFormats,
               .network = {.loss = 0.02, .jitter_ns = 100'000}});
      auto buffers = job.inputs<float>(count, [](std::mt19937_64& random) {
        const float small = static_cast<float>(random() % 1000) / 7;
        return random() % 4 ? small : small * 0x1p60F;
      });
      for (auto& one : buffers) one[0] = 1;
      for (auto& one : buffers) one.back() = 0x1p70F;
      if (count > 100) buffers[1][77] = std::numeric_limits<float>::infinity();
      ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kFloat32));
      EXPECT_GT(job.simulation.worker(0).counters().fine_rounds, 0u) << count;
      by_formats[all] = buffers;
    }
    EXPECT_EQ(by_formats[0], by_formats[1]) << count;
  }
}

// With kI16 the lanes have 16 bits, also where exponents of elements travel as words.
TEST(WordsOfFloats, SixteenBitLanesNeedTheirFormatOnly) {
  constexpr uint32_t kI16 = 1u << static_cast<uint32_t>(sap::Format::kI16);
  const std::pair<uint32_t, uint32_t> kPerPacket[] = {{sap::kWordFormats, kLanes},
                                                      {sap::kWordFormats | kI16, 2 * kLanes},
                                                      {sap::kKnownFormats, 2 * kLanes}};
  for (const auto& [formats, elements] : kPerPacket) {
    Job job(
        {.leaves = {2}, .lanes = kLanes, .half_bits = number::HalfBits::k16, .formats = formats});
    const Operation operation{.type = DataType::kBfloat16};
    EXPECT_EQ(job.simulation.worker(0).payload_of(operation).elements_per_packet(), elements);
    std::vector<std::vector<uint16_t>> buffers(2, std::vector<uint16_t>(500));
    for (auto& one : buffers) {
      for (size_t i = 0; i < 500; ++i) one[i] = i % 80 == 0 ? 0x3f80 : 0x4f80;  // 1, 2^32
    }
    ASSERT_TRUE(job.reduce(pointers(buffers), DataType::kBfloat16));
    EXPECT_GT(job.simulation.worker(0).counters().fine_rounds, 0u);
    for (const auto& one : buffers) {
      for (size_t i = 0; i < 500; ++i) ASSERT_EQ(one[i], i % 80 == 0 ? 0x4000 : 0x5000) << i;
    }
  }
}

TEST(Words, AFormatThatTheSwitchHasIsUsed) {
  const std::tuple<DataType, Op, uint32_t, uint32_t> kCases[] = {
      // type, operation, elements a packet with its own format, and without it
      {DataType::kInt8, Op::kSum, 4 * kLanes, kLanes},
      {DataType::kUint8, Op::kMax, 2 * 4 * 8, 2 * 8},
      {DataType::kInt64, Op::kSum, kLanes / 2, kLanes / 3},
      {DataType::kUint64, Op::kMin, 8, 16},
      {DataType::kInt32, Op::kSum, kLanes, kLanes},
      {DataType::kFloat32, Op::kSum, kLanes, kLanes},
  };
  for (const auto& [type, op, own, without] : kCases) {
    const uint32_t format = 1u << static_cast<uint32_t>(number::format_of(type));
    const auto elements = [&, type = type, op = op](uint32_t formats) {
      Job job({.leaves = {2}, .lanes = kLanes, .formats = sap::kWordFormats | formats});
      return job.simulation.worker(0).payload_of({.type = type, .op = op}).elements_per_packet();
    };
    EXPECT_EQ(elements(sap::kKnownFormats), own);
    EXPECT_EQ(elements(format), own);
    EXPECT_EQ(elements(sap::kKnownFormats & ~format), format & sap::kWordFormats ? own : without);
  }
}

// The switch dies between the two rounds of a packet, and another one takes over later.
TEST(WordsMove, BetweenUpperAndLowerWords) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Job job({.leaves = {3},
             .slots = 2,
             .formats = sap::kWordFormats,
             .network = {.seed = seed, .loss = 0.1, .jitter_ns = 300'000}});
    auto buffers = job.inputs<int64_t>(300, [](std::mt19937_64& random) {
      return static_cast<int64_t>(random() & 0x80000001'ffffffff);
    });
    std::vector<int64_t> want = buffers[0];
    for (const auto& one : buffers) {
      for (size_t i = 0; i < want.size(); ++i) want[i] = std::max(want[i], one[i]);
    }
    std::vector<uint64_t> tickets;
    ASSERT_TRUE(job.start(pointers(buffers), DataType::kInt64, Op::kMax, &tickets));
    const auto results = [&] { return job.simulation.worker(0).counters().results; };
    ASSERT_TRUE(job.simulation.run_until([&] { return results() > seed; }));
    job.simulation.kill_switch();
    job.simulation.move_to_ranks(4);
    ASSERT_TRUE(job.simulation.run_until([&] { return results() > seed + 9; }));
    job.simulation.move_to_switch(9, 200);
    ASSERT_TRUE(job.finish(tickets));
    for (const auto& one : buffers) ASSERT_EQ(one, want) << seed;
    EXPECT_GT(job.simulation.worker(0).counters().upper_rounds, 0u);
  }
}

// A move between two rounds for exponents of elements, too.
TEST(WordsMove, BetweenExponentsOfElements) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<std::vector<float>> by_switch;
    for (const bool killed : {false, true}) {
      Job job({.leaves = {3},
               .slots = 1,
               .formats = sap::kWordFormats,
               .network = {.seed = seed, .loss = 0.1, .jitter_ns = 300'000}});
      std::vector<std::vector<float>> buffers(3, std::vector<float>(160));
      for (auto& one : buffers) {
        for (size_t i = 0; i < one.size(); ++i) {
          const float small = static_cast<float>(job.random() % 1000) / 7;
          one[i] = i % 16 == 0 ? 1 : i % 16 == 15 ? 0x1p60F : small;
        }
      }
      std::vector<uint64_t> tickets;
      ASSERT_TRUE(job.start(pointers(buffers), DataType::kFloat32, Op::kSum, &tickets));
      const WorkerCounters& counters = job.simulation.worker(0).counters();
      ASSERT_TRUE(job.simulation.run_until([&] { return counters.results > seed; }));
      if (killed) {
        job.simulation.kill_switch();
        job.simulation.move_to_ranks(4);
      }
      ASSERT_TRUE(job.finish(tickets));
      EXPECT_GT(counters.fine_rounds, 10u) << "two for each packet";
      if (by_switch.empty()) by_switch = buffers;
      EXPECT_EQ(buffers, by_switch) << seed;
    }
  }
}

// Packets have room for more than one number takes.
TEST(Words, WhatNoNumberFillsIsZero) {
  const int64_t number = 5;
  const auto* const elements = reinterpret_cast<const std::byte*>(&number);
  const std::byte upper[4] = {};
  const auto tail = [&](DataType type, Op op, uint32_t used, auto pack) {
    const Payload payload(type, op, kLanes, 2, number::HalfBits::k32, sap::kWordFormats);
    std::vector<std::byte> lanes(size_t{4} * kLanes, std::byte{0xee});
    pack(payload, lanes.data());
    const auto packet = std::span(lanes).first(size_t{4} * payload.lanes_for(1));
    for (const std::byte byte : packet.subspan(size_t{4} * used)) EXPECT_EQ(byte, std::byte{0});
    EXPECT_GT(packet.size(), size_t{4} * used);
  };
  const auto pack = [&](const Payload& payload, std::byte* lanes) {
    (void)payload.pack(elements, 1, {}, lanes);
  };
  tail(DataType::kInt8, Op::kSum, 1, pack);
  tail(DataType::kInt64, Op::kSum, 3, pack);
  for (const std::byte* const earlier : {static_cast<const std::byte*>(nullptr), &upper[0]}) {
    tail(DataType::kInt64, Op::kMax, 1, [&](const Payload& payload, std::byte* lanes) {
      payload.pack_half(elements, 1, earlier, lanes);
    });
  }
}

// Guesses, flags and upper words of the operation before on the same slot are forgotten.
TEST(Words, NothingOfAnOperationReachesTheNext) {
  Job job({.leaves = {2}, .slots = 1, .formats = sap::kWordFormats});
  for (int i = 0; i < 4; ++i) {
    std::vector<std::vector<int64_t>> whole = {{-5, int64_t{7} << 40}, {-9, int64_t{7} << 40 | 3}};
    ASSERT_TRUE(job.reduce(pointers(whole), DataType::kInt64, i % 2 ? Op::kMin : Op::kMax));
    const auto want = i % 2 ? std::vector<int64_t>{-9, int64_t{7} << 40}
                            : std::vector<int64_t>{-5, int64_t{7} << 40 | 3};
    for (const auto& one : whole) ASSERT_EQ(one, want);
    std::vector<std::vector<float>> floats = {{1, 0x1p60F}, {2, 0x1p61F}};
    ASSERT_TRUE(job.reduce(pointers(floats), DataType::kFloat32));
    for (const auto& one : floats) ASSERT_EQ(one, (std::vector<float>{3, 3 * 0x1p60F}));
    std::vector<std::vector<uint64_t>> sums = {{~uint64_t{0}}, {2}};
    ASSERT_TRUE(job.reduce(pointers(sums), DataType::kUint64));
    for (const auto& one : sums) ASSERT_EQ(one, std::vector<uint64_t>{1});
  }
}

TEST(Words, AWorkerNeedsAtLeastThem) {
  class Nowhere final : public Datagrams {
    void send(const Destination&, std::span<const std::byte>) override {}
  } nowhere;
  for (const uint32_t formats : {0u, 1u, 2u, sap::kWordFormats | 1u << 5}) {
    const auto worker = Worker::open({.formats = formats, .round_trip = {}}, nowhere);
    ASSERT_FALSE(worker) << formats;
    EXPECT_EQ(worker.error().status, Status::kInvalid);
  }
}

}  // namespace
}  // namespace slime
