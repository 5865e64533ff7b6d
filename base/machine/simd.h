// Vector instructions: which this processor has, and how loops are compiled for each level of them.
//
// Loops stand in a file without include guard, x_body.h, in namespace SLIME_SIMD_LEVEL. Its .cc
// file includes it once per level, between `#pragma GCC push_options`, `target` and `pop_options`,
// and lists the tables of functions in a SimdTables, which chooses. Whole files are never compiled
// for a level: an inline function of the C++ library, instantiated there, could replace the common
// copy in the whole program. For the same reason bodies use only the compiler's own functions.
// Compilers without that pragma (clang) compile all levels alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slime {

// kAvx2 includes F16C. kAvx512 is F, BW, DQ and VL.
enum class SimdLevel : uint8_t { kPortable, kAvx2, kAvx512 };
inline constexpr size_t kSimdLevels = 3;

// The highest that this processor has. Asked once.
SimdLevel simd_level();

// The same functions for several levels; nullptr: not built for it. Constant after construction.
template <typename Table>
class SimdTables {
 public:
  constexpr explicit SimdTables(const Table* portable, const Table* avx2 = nullptr,
                                const Table* avx512 = nullptr)
      : tables_{portable, avx2, avx512} {}

  // nullptr: this processor lacks it, or it is not built.
  const Table* at(SimdLevel level) const {
    return level <= simd_level() ? tables_[static_cast<size_t>(level)] : nullptr;
  }
  const Table& best() const {
    auto level = static_cast<size_t>(simd_level());
    while (tables_[level] == nullptr) --level;
    return *tables_[level];
  }

 private:
  const Table* tables_[kSimdLevels];
};

}  // namespace slime
