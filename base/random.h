// Random numbers that a stranger on the network cannot guess.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>

#include "base/error.h"

namespace slime {

// A peer that sends this nonce proves that it knows the handle that the listener gave to NCCL.
using Nonce = std::array<std::byte, 16>;

Result<void> random_bytes(std::span<std::byte> bytes);
Result<Nonce> random_nonce();
template <std::unsigned_integral Number>
Result<Number> random_number() {
  Number number = 0;
  auto filled = random_bytes(std::as_writable_bytes(std::span(&number, 1)));
  if (!filled) return fail(std::move(filled.error()));
  return number;
}

// Compares in a time that does not depend on where they differ.
bool same_nonce(const Nonce& left, const Nonce& right);

}  // namespace slime
