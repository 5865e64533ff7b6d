// Numbers that choose how much of a seeded test is run, and from which seed.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace slime::test {

inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

}  // namespace slime::test
