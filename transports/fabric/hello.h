// What the ends of a channel tell each other of their endpoints, over the lifeline, before anything
// goes over the fabric. Little-endian, no padding, moved with memcpy. Nothing in it is trusted by
// who receives it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "transports/fabric/lifeline.h"

namespace slime::fabric {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr uint32_t kMagic = 0x66696c73;  // "slif"
inline constexpr uint16_t kVersion = 1;
inline constexpr size_t kMaxName = 256;  // bytes, with a zero at the end

// Hello::flags
inline constexpr uint16_t kWantsConfirmations = 1;  // confirm_delivery at the sender of it

struct Hello {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t flags = 0;
  uint32_t name_bytes = 0;
  uint32_t reserved = 0;
  // Registered memory that any peer of the rail may write into: the target of warm-ups.
  uint64_t landing_address = 0, landing_key = 0;
  // Of the endpoint. Zeros follow it, one at least: some providers' names are strings.
  std::array<std::byte, kMaxName> name = {};
};
static_assert(sizeof(Hello) == 32 + kMaxName);
static_assert(sizeof(Hello) / sizeof(uint32_t) <= Lifeline::kMaxWords);

inline std::span<const std::byte> name_in(const Hello& hello) {
  return std::span(hello.name).first(hello.name_bytes);
}

inline std::vector<uint32_t> pack(const Hello& hello) {
  std::vector<uint32_t> words(sizeof hello / sizeof(uint32_t));
  std::memcpy(words.data(), &hello, sizeof hello);
  return words;
}

// The error says what is wrong with a hello that no channel of ours can have sent.
inline Result<Hello> unpack(std::span<const uint32_t> words) {
  Hello hello;
  const bool whole = words.size_bytes() == sizeof hello;
  if (whole) std::memcpy(static_cast<void*>(&hello), words.data(), sizeof hello);
  const bool sound = whole && hello.magic == kMagic && hello.version == kVersion &&
                     hello.name_bytes >= 1 && hello.name_bytes < kMaxName;
  if (sound) {
    std::ranges::fill(std::span(hello.name).subspan(hello.name_bytes), std::byte{});
    return hello;
  }
  return fail(make_error(Status::kRemote, 0,
                         "the hello is not that of a libfabric channel (%zu bytes, magic 0x%x, "
                         "version %u, ours is %u); use the same libnet-slime on all hosts",
                         words.size_bytes(), hello.magic, hello.version, kVersion));
}

}  // namespace slime::fabric
