// Layout on the wire, integers, tails, neutral elements, and callers with other float modes.
#include "collnet/number/number.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <string>

#include "test/collnet/number/support.h"

namespace slime::number {
namespace {

using test::Bytes;
using test::FloatCase;
using test::kFloatCases;
using test::Random;
using test::random_bytes;
using test::seed_or;

constexpr DataType kIntegers[] = {DataType::kInt8,   DataType::kUint8, DataType::kInt32,
                                  DataType::kUint32, DataType::kInt64, DataType::kUint64};
constexpr int8_t kExponents[2] = {0, 0};
constexpr uint32_t kWords = 8;
constexpr std::byte kGuard{0x5a};

Coding integer_coding(DataType type, uint32_t workers) {
  return {type, format_of(type), kWords, workers};
}

TEST(Number, FormatsAreThoseOfTheWire) {
  using enum sap::Format;
  constexpr sap::Format kExpected[kDataTypes] = {kI8,  kU8,  kI32, kU32, kI64,
                                                 kU64, kI32, kI32, kI32};
  for (uint8_t type = 0; type < kDataTypes; ++type) {
    EXPECT_EQ(format_of(static_cast<DataType>(type)), kExpected[type]);
  }
  EXPECT_EQ(format_of(DataType::kFloat16, LaneWidth::kNarrow), kI16);
  EXPECT_EQ(format_of(DataType::kBfloat16, LaneWidth::kNarrow), kI16);
  EXPECT_EQ(format_of(DataType::kFloat32, LaneWidth::kNarrow), kI32);
  EXPECT_EQ(packet_elements({DataType::kFloat16, kI16, 64, 2}), 128u);
  EXPECT_EQ(packet_elements({DataType::kInt64, kI64, 64, 2}), 32u);
}

TEST(Number, RefusesCodingsThatCannotBe) {
  const Coding good = {DataType::kFloat32, sap::Format::kI32, 64, 8};
  EXPECT_TRUE(is_valid(good));
  const auto with = [&](auto change) {
    Coding coding = good;
    change(coding);
    return is_valid(coding);
  };
  EXPECT_FALSE(with([](Coding& c) { c.lanes = 0; }));
  EXPECT_FALSE(with([](Coding& c) { c.lanes = 63; }));
  EXPECT_FALSE(with([](Coding& c) { c.lanes = sap::kMaxLanes + 2; }));
  EXPECT_FALSE(with([](Coding& c) { c.workers = 0; }));
  EXPECT_FALSE(with([](Coding& c) { c.workers = kMaxWorkers + 1; }));
  EXPECT_FALSE(with([](Coding& c) { c.format = sap::Format::kI16; }));
  EXPECT_FALSE(with([](Coding& c) { c.type = static_cast<DataType>(kDataTypes); }));
  EXPECT_TRUE(with([](Coding& c) { c.lanes = sap::kMaxLanes, c.workers = kMaxWorkers; }));
}

Bytes packed(const Coding& coding, const void* elements, size_t count) {
  Bytes payload(4 * coding.lanes);
  pack(coding, ReduceOp::kSum, kExponents, elements, count, payload.data());
  return payload;
}

TEST(Number, NumbersAreBigEndianInTheOrderOfElements) {
  const auto expect = [](const Bytes& payload, std::initializer_list<int> bytes) {
    Bytes expected(payload.size());
    std::transform(bytes.begin(), bytes.end(), expected.begin(),
                   [](int byte) { return static_cast<std::byte>(byte); });
    EXPECT_EQ(payload, expected);
  };
  const int8_t small[] = {1, -2, 3};
  expect(packed(integer_coding(DataType::kInt8, 1), small, 3), {1, 0xfe, 3});
  const uint32_t words[] = {0x01020304, 0xa0b0c0d0};
  expect(packed(integer_coding(DataType::kUint32, 1), words, 2),
         {1, 2, 3, 4, 0xa0, 0xb0, 0xc0, 0xd0});
  const uint64_t large[] = {0x0102030405060708};
  expect(packed(integer_coding(DataType::kInt64, 1), large, 1), {1, 2, 3, 4, 5, 6, 7, 8});
  // x = 0, n = 1: k = 30 and 14.
  const float floats[] = {1, -0.5f, 0x1p-30f};
  expect(packed({DataType::kFloat32, sap::Format::kI32, kWords, 1}, floats, 3),
         {0x40, 0, 0, 0, 0xe0, 0, 0, 0, 0, 0, 0, 1});
  const uint16_t halves[] = {0x3c00, 0xb800, 0x3c01};  // 1, -0.5, 1 + 2^-10
  expect(packed({DataType::kFloat16, sap::Format::kI16, kWords, 1}, halves, 3),
         {0x40, 0, 0xe0, 0, 0x40, 0x10});
}

TEST(Number, IntegerSumsAreExactModuloTheirWidth) {
  Random random(seed_or(1));
  for (const DataType type : kIntegers) {
    for (const uint32_t workers : {1u, 2u, 7u, 255u}) {
      const Coding coding = integer_coding(type, workers);
      const size_t bytes = element_bytes(type), count = packet_elements(coding);
      Bytes sum(4 * kWords), out(bytes * count);
      std::vector<uint64_t> expected(count);
      for (uint32_t w = 0; w < workers; ++w) {
        const Bytes in = random_bytes(random, bytes * count);
        for (size_t i = 0; i < count; ++i) {
          uint64_t value = 0;
          std::memcpy(&value, in.data() + i * bytes, bytes);
          expected[i] += value;
        }
        test::add_payload(coding.format, sum, packed(coding, in.data(), count));
      }
      unpack(coding, nullptr, sum.data(), out.data(), count);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(std::memcmp(out.data() + i * bytes, &expected[i], bytes), 0) << i;
      }
    }
  }
}

// The least and greatest values that an element can have, found without a table.
int64_t extreme(DataType type, bool least) {
  const bool is_signed = static_cast<uint8_t>(type) % 2 == 0;
  const size_t bits = 8 * element_bytes(type) - is_signed;
  const uint64_t greatest = ~uint64_t{0} >> (64 - bits);
  if (least) return is_signed ? -static_cast<int64_t>(greatest) - 1 : 0;
  return static_cast<int64_t>(greatest);
}

TEST(Number, TailsAreNeutral) {
  Random random(seed_or(2));
  for (const DataType type : kIntegers) {
    const Coding coding = integer_coding(type, 3);
    const size_t bytes = element_bytes(type), most = packet_elements(coding);
    const Bytes in = random_bytes(random, bytes * most);
    for (size_t count = 0; count <= most; ++count) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax}) {
        Bytes payload(4 * kWords, kGuard), out(bytes * most, kGuard);
        pack(coding, op, nullptr, in.data(), count, payload.data());
        unpack(coding, nullptr, payload.data(), out.data(), most);
        EXPECT_TRUE(std::equal(in.begin(), in.begin() + bytes * count, out.begin()));
        const int64_t neutral = op == ReduceOp::kMin   ? extreme(type, false)
                                : op == ReduceOp::kMax ? extreme(type, true)
                                                       : 0;
        for (size_t i = count; i < most; ++i) {
          EXPECT_EQ(std::memcmp(out.data() + i * bytes, &neutral, bytes), 0)
              << "type " << static_cast<int>(type) << " op " << static_cast<int>(op);
        }
      }
    }
  }
}

// Every count up to a full packet, at odd addresses, with a guard on either side of all that is
// written.
TEST(Number, WritesExactlyWhatItShouldAnywhere) {
  Random random(seed_or(3));
  for (const FloatCase& c : kFloatCases) {
    const Coding coding = c.coding(kWords, 2);
    const size_t bytes = element_bytes(c.type), most = packet_elements(coding);
    for (size_t count = 0; count <= most; ++count) {
      for (size_t shift = 0; shift < 4; ++shift) {
        const Bytes in = random_bytes(random, shift + bytes * count);
        Bytes payload(4 * kWords + 4, kGuard), out(bytes * count + 4, kGuard);
        pack(coding, ReduceOp::kSum, kExponents, in.data() + shift, count, payload.data() + shift);
        unpack(coding, kExponents, payload.data() + shift, out.data() + shift, count);
        const auto is_guard = [](std::byte byte) { return byte == kGuard; };
        EXPECT_TRUE(std::all_of(payload.begin(), payload.begin() + shift, is_guard));
        EXPECT_TRUE(std::all_of(payload.end() - 4 + shift, payload.end(), is_guard));
        EXPECT_TRUE(std::all_of(out.begin(), out.begin() + shift, is_guard));
        EXPECT_TRUE(std::all_of(out.end() - 4 + shift, out.end(), is_guard));
        const size_t used = shift + count * sap::width_of(coding.format) / 8;
        EXPECT_TRUE(std::all_of(payload.begin() + used, payload.end() - 4 + shift,
                                [](std::byte byte) { return byte == std::byte{0}; }));
      }
    }
  }
}

TEST(Number, PackAnswersTheCheckOfThePayload) {
  Random random(seed_or(4));
  std::vector<Coding> codings;
  for (const uint32_t words : {2u, 64u, 250u, sap::kMaxLanes}) {
    for (const DataType type : kIntegers) codings.push_back({type, format_of(type), words, 3});
    for (const FloatCase& c : kFloatCases) codings.push_back(c.coding(words, 3));
  }
  for (const Coding& coding : codings) {
    for (const size_t count :
         {packet_elements(coding), packet_elements(coding) * 3 / 4, size_t{1}}) {
      const Bytes in = random_bytes(random, element_bytes(coding.type) * count);
      Bytes payload(4 * coding.lanes);
      const uint32_t image =
          pack(coding, ReduceOp::kSum, kExponents, in.data(), count, payload.data());
      EXPECT_EQ(image, sap::check_of(coding.format, payload, 0));
      EXPECT_EQ(image, check_image(coding.format, payload.data(), coding.lanes));
    }
  }
}

// Another rounding mode, and denormals flushed, in the thread that calls.
TEST(Number, TheCallersFloatEnvironmentDoesNotMatter) {
  Random random(seed_or(5));
  for (const FloatCase& c : kFloatCases) {
    const Coding coding = c.coding(64, 3);
    const size_t count = packet_elements(coding);
    Bytes in = random_bytes(random, element_bytes(c.type) * count);
    // Half of them denormal.
    for (size_t i = 0; i < count; i += 2) {
      test::set_bits(c.type, in, i,
                     random() & ((1u << test::float_format(c.type).fraction_bits) - 1));
    }
    const int8_t exponents[2] = {-126, 15};
    const Bytes sums = random_bytes(random, 4 * coding.lanes);
    const auto run = [&] {
      Bytes payload(4 * coding.lanes), out(in.size());
      pack(coding, ReduceOp::kSum, exponents, in.data(), count, payload.data());
      unpack(coding, exponents, sums.data(), out.data(), count);
      payload.insert(payload.end(), out.begin(), out.end());
      return payload;
    };
    const Bytes expected = run();
    std::fesetround(FE_UPWARD);
#ifdef __x86_64__
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040);  // flush to zero, denormals are zeros
#endif
    const Bytes found = run();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
#ifdef __x86_64__
    EXPECT_EQ(__builtin_ia32_stmxcsr() & 0x8040, 0x8040u);
    __builtin_ia32_ldmxcsr(before);
#endif
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(found, expected) << c.name;
  }
}

}  // namespace
}  // namespace slime::number
