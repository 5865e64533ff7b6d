// Kernels of each instruction set against the portable ones, on all bytes there can be.
#include "collnet/number/kernels.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <tuple>

#include "test/collnet/number/support.h"

namespace slime::number {
namespace {

using test::Bytes;
using test::Random;
using test::random_bytes;
using test::seed_or;

constexpr std::byte kGuard{0x5a};
constexpr size_t kMostElements = 530;

class KernelsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    if (name == "AVX2") mine_ = kernel_levels().at(SimdLevel::kAvx2);
    if (name == "AVX512") mine_ = kernel_levels().at(SimdLevel::kAvx512);
    if (mine_ != nullptr) return;
    GTEST_SKIP() << "this processor lacks " << GetParam() << ": its kernels are NOT tested here";
  }
  // Counts around every vector length and around what halves are staged by; elements of at most 8
  // bytes at an odd address.
  template <typename Check>
  void for_buffers(Check check) {
    for (size_t count = 0; count < kMostElements; count += count == 140 ? 360 : 1) {
      const Bytes in = random_bytes(random_, 8 * count + 1);
      check(in.data() + 1, count);
    }
  }
  static Bytes written(const auto& write) {
    Bytes out(8 * kMostElements + 8, kGuard);
    const uint64_t answer = write(out.data() + 1);
    std::memcpy(out.data() + out.size() - 7, &answer, 7);
    return out;
  }

  const Kernels* mine_ = nullptr;
  const Kernels* const portable_ = kernel_levels().at(SimdLevel::kPortable);
  Random random_{seed_or(6)};
};

TEST_P(KernelsTest, FindTheSame) {
  for (size_t kind = 0; kind < kFloatKinds; ++kind) {
    for_buffers([&](const std::byte* in, size_t count) {
      const auto found = [&](const Kernels* kernels) {
        const Found f = kernels->find[kind](in, count);
        return std::tuple(f.magnitude, f.nan, f.plus_infinity, f.minus_infinity);
      };
      EXPECT_EQ(found(mine_), found(portable_));
    });
  }
}

TEST_P(KernelsTest, QuantiseTheSame) {
  for (size_t kind = 0; kind < kFloatKinds; ++kind) {
    for (size_t wide = kind == kSingle ? 1 : 0; wide < 2; ++wide) {
      for_buffers([&](const std::byte* in, size_t count) {
        const int power = static_cast<int>(random_() % 300) - 130;
        const Scale scale = {std::ldexp(1, power), wide ? INT32_MAX / 3 : 32767 / 3};
        const auto run = [&](const Kernels* kernels) {
          return written([&](std::byte* out) {
            return kernels->quantise[kind][wide](out, in, count, scale, weights(1 + wide, 0));
          });
        };
        EXPECT_EQ(run(mine_), run(portable_)) << "kind " << kind << " wide " << wide;
      });
    }
  }
}

TEST_P(KernelsTest, DequantiseTheSame) {
  for (size_t kind = 0; kind < kFloatKinds; ++kind) {
    for (size_t wide = kind == kSingle ? 1 : 0; wide < 2; ++wide) {
      for_buffers([&](const std::byte* in, size_t count) {
        const double factor = std::ldexp(1, static_cast<int>(random_() % 300) - 160);
        const auto run = [&](const Kernels* kernels) {
          return written([&](std::byte* out) {
            kernels->dequantise[kind][wide](out, in, count, factor);
            return 0;
          });
        };
        EXPECT_EQ(run(mine_), run(portable_)) << "kind " << kind << " wide " << wide;
      });
    }
  }
}

TEST_P(KernelsTest, CopyTheSame) {
  for (size_t width = 0; width < kWidths; ++width) {
    for_buffers([&](const std::byte* in, size_t count) {
      const auto run = [&](const Kernels* kernels) {
        Bytes all = written([&](std::byte* out) {
          return kernels->pack[width](out, in, count, weights(width, 5));
        });
        const Bytes more = written([&](std::byte* out) {
          kernels->unpack[width](out, in, count);
          return kernels->weigh[width](in, count, weights(width, 7));
        });
        all.insert(all.end(), more.begin(), more.end());
        return all;
      };
      EXPECT_EQ(run(mine_), run(portable_)) << "width " << width;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, KernelsTest, testing::Values("AVX2", "AVX512"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Number, SaysWhichKernelsItUses) { std::printf("kernels: %s\n", kernels().name); }

}  // namespace
}  // namespace slime::number
