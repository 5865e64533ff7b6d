// What a fuzz target is made of. One source serves two builds: `make fuzz` links each target alone
// with libFuzzer (SLIME_LIBFUZZER), every other build links all of them into build/test/fuzz, which
// replays the kept corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace slime::fuzz {

// The input, taken from the front. At its end numbers are zero and spans are short, so that every
// prefix of an input is an input.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(reinterpret_cast<const std::byte*>(data), size) {}

  bool empty() const { return left_.empty(); }
  template <typename Number>
  Number take() {
    static_assert(std::is_integral_v<Number>);
    Number value = 0;
    const auto part = bytes(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), part.size());
    return value;
  }
  uint32_t below(uint32_t limit) { return take<uint8_t>() % limit; }  // limit <= 256
  std::span<const std::byte> bytes(size_t most) {
    const auto part = left_.first(most < left_.size() ? most : left_.size());
    left_ = left_.subspan(part.size());
    return part;
  }
  std::span<const std::byte> rest() { return bytes(left_.size()); }

 private:
  std::span<const std::byte> left_;
};

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// An invariant does not hold: says where, and aborts, which is what fuzzers look for.
[[noreturn]] void violated(const char* what, const char* file, int line);

using Function = int (*)(const uint8_t* data, size_t size);
struct Target {
  const char* name;
  Function run;
};
std::vector<Target>& targets();
inline bool enlist(const char* name, Function run) {
  targets().push_back({name, run});
  return true;
}

}  // namespace slime::fuzz

#define FUZZ_CHECK(holds) ((holds) ? void() : slime::fuzz::violated("" #holds, __FILE__, __LINE__))

// SLIME_FUZZ_TARGET(sap, input) { ... }: once per source file, named as the file.
#ifdef SLIME_LIBFUZZER
#define SLIME_FUZZ_ENTRY(name)                                             \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size); \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#else
#define SLIME_FUZZ_ENTRY(name)                                                                 \
  static int run_##name(const uint8_t* data, size_t size);                                     \
  [[maybe_unused]] static const bool enlisted_##name = slime::fuzz::enlist(#name, run_##name); \
  static int run_##name(const uint8_t* data, size_t size)
#endif
#define SLIME_FUZZ_TARGET(name, input)                \
  static void fuzz_##name(slime::fuzz::Input& input); \
  SLIME_FUZZ_ENTRY(name) {                            \
    slime::fuzz::Input all(data, size);               \
    fuzz_##name(all);                                 \
    return 0;                                         \
  }                                                   \
  static void fuzz_##name(slime::fuzz::Input& input)
