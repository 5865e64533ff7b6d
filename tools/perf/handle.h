// What a listener gives to those who will connect, as bytes and as text for the coordinator.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "plugin/abi/types.h"

namespace slime::perf {

using HandleBytes = std::array<std::byte, nccl::kHandleMaxBytes>;

std::string to_hex(std::span<const std::byte> bytes);
bool from_hex(const std::string& text, std::span<std::byte> bytes);

}  // namespace slime::perf
