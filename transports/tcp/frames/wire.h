// What tcp rails say to each other. Every struct here is its own wire image: little-endian, no
// padding, moved with memcpy. Nothing in it is trusted by who receives it.
//
//   set-up   active  -> passive   Hello with the nonce of the passive channel
//            passive -> active    Greeting with the nonce of the active channel (the answer)
//   after    both ways            Frame*; a Frame is a FrameHeader, and `length` bytes of
//                               payload if its type has one (FrameType)
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/net/socket.h"
#include "base/random.h"
#include "transports/rail.h"

namespace slime::tcp {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr uint32_t kHelloMagic = 0x6d696c73;  // "slim"
inline constexpr uint16_t kVersion = 6;

struct Greeting {
  uint32_t magic = kHelloMagic;
  uint16_t version = kVersion;
  uint16_t flags = 0;  // none yet
  Nonce nonce{};
};
inline constexpr size_t kGreetingBytes = 24;
static_assert(sizeof(Greeting) == kGreetingBytes);

// Nobody reads the filling: it makes a hello as long as the longest packet, so that a path which
// loses such packets is found before there is work (small_paths.h). The passive end writes short
// frames only.
struct Hello : Greeting {
  std::array<std::byte, 8976> filling{};
};
inline constexpr size_t kHelloBytes = 9000;
static_assert(sizeof(Hello) == kHelloBytes);

inline constexpr uint16_t kFrameMagic = 0x5346;  // "FS"
// kWrite, kSilentWrite and kAnswer have a payload. Both ends count the writes of each direction
// from 1, in their order, silent ones too: that is the number of a write.
enum class FrameType : uint8_t {
  kWrite = 1,  // with an immediate
  kSilentWrite = 2,
  kAck = 3,      // says only how many writes have arrived
  kRefused = 4,  // `immediate`: the number of a write that was thrown away; it counts as arrived
  kRead = 5,     // `immediate`: the reader's place for it; `length` bytes are wanted
  kAnswer = 6,   // the next bytes of a read; `immediate`: its place
  kReadRefused = 7,  // no more bytes of it come, and what came may be wrong; `immediate`: its place
  kReadDone = 8,     // all bytes of it have come; `immediate`: its place
  // Headers of silent writes with a payload follow, `immediate` of them, and then the payloads,
  // which have `length` bytes together.
  kList = 9,
};
// FrameHeader::flags of a kWrite. Set unless its poster has confirm_delivery, and where it is
// Work::unconfirmed.
inline constexpr uint8_t kNeedsNoAck = 1;

inline constexpr uint32_t kMaxReads = 64;             // outstanding, of each end of a channel
inline constexpr uint32_t kMostListed = 64;           // headers of a kList
inline constexpr uint32_t kMaxListBytes = 1 << 20;    // of their payloads
inline constexpr uint32_t kMaxAnswerBytes = 1 << 20;  // in one frame

struct FrameHeader {
  uint16_t magic = kFrameMagic;
  uint8_t type = 0;
  uint8_t flags = 0;  // kNeedsNoAck; all other bits must be 0
  uint32_t ack = 0;   // writes of the receiver of this frame that have arrived so far, mod 2^32
  uint32_t immediate = 0;
  uint32_t length = 0;
  uint64_t remote_address = 0;
  uint64_t remote_key = 0;
};
inline constexpr size_t kFrameHeaderBytes = 32;
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);

// The inside of a ChannelAddress.
struct Endpoint {
  SocketAddress address;  // active end: port 0, it dials from any
  Nonce nonce{};
};

inline ChannelAddress pack_endpoint(const Endpoint& endpoint) {
  ChannelAddress packed{};
  const SocketAddress::Wire wire = endpoint.address.pack();
  static_assert(sizeof(wire) + sizeof(Nonce) <= sizeof(ChannelAddress));
  std::memcpy(packed.data(), wire.data(), wire.size());
  std::memcpy(packed.data() + wire.size(), endpoint.nonce.data(), endpoint.nonce.size());
  return packed;
}

inline Result<Endpoint> unpack_endpoint(const ChannelAddress& packed) {
  Endpoint endpoint;
  auto address =
      SocketAddress::unpack(std::span<const std::byte>(packed).first<SocketAddress::kWireBytes>());
  if (!address) return fail(std::move(address.error()));
  endpoint.address = *address;
  std::memcpy(endpoint.nonce.data(), packed.data() + SocketAddress::kWireBytes,
              endpoint.nonce.size());
  return endpoint;
}

}  // namespace slime::tcp
