// Sizes as people write them: 8, 64K, 1.5M, 1GiB; K, M and G are powers of 1024, as in nccl-tests.
// And bytes as hexadecimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace slime::tools {

Result<uint64_t> parse_bytes(std::string_view text);
std::string format_bytes(uint64_t bytes);  // "64 KiB"; exact, or with two digits

std::string to_hex(std::span<const std::byte> bytes);
bool from_hex(const std::string& text, std::span<std::byte> bytes);

}  // namespace slime::tools
