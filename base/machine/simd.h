// Vector instructions: the level that this processor has, and the way to compile loops for each
// level.
//
// Loops stand in a file without include guard, x_body.h, in namespace SLIME_SIMD_LEVEL. Its .cc
// file includes it once for each level, between `#pragma GCC push_options`, `target` and
// `pop_options`. It lists the tables of functions in a SimdTables, which chooses one. Whole files
// are never compiled for a level, because an inline function of the C++ library, instantiated
// there, could replace the common copy in the whole program. For the same reason bodies use only
// the compiler's own functions. Compilers without that pragma (clang) compile all levels alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slime {

// kAvx2 includes F16C. kAvx512 is F, BW, DQ and VL.
enum class SimdLevel : uint8_t { kPortable, kAvx2, kAvx512 };
inline constexpr size_t kSimdLevels = 3;

// The highest level that this processor has. It is found out once.
SimdLevel simd_level();

// Tables of the same functions for several levels; nullptr: not built for a level. Constant after
// construction.
template <typename Table>
class SimdTables {
 public:
  constexpr explicit SimdTables(const Table* portable, const Table* avx2 = nullptr,
                                const Table* avx512 = nullptr)
      : tables_{portable, avx2, avx512} {}

  // nullptr: this processor lacks the level, or no table is built for it.
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
