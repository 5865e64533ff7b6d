// The wire format of verbs channels: the inside of a ChannelAddress, and the first message over a
// new queue pair. Little-endian, no padding, moved with memcpy. The receiver checks all of it
// before use.
//
//   set-up   second end -> first end   Hello with both nonces (a SEND), see ChannelOptions::first
//            first end -> second end   Hello with both nonces
//   after    both ways            RDMA WRITE WITH IMMEDIATE, RDMA WRITE or RDMA READ, one per work;
//                                 RDMA READs behind silent writes
//   end      a SEND without bytes: this end closes
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/random.h"
#include "transports/rail.h"
#include "transports/verbs/device/gid.h"

namespace slime::verbs {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr uint32_t kMagic = 0x62696c73;  // "slib"
inline constexpr uint16_t kVersion = 2;
inline constexpr size_t kMaxQueuePairs = 8;
inline constexpr int kMostReads = 16;

struct QueuePairName {
  uint32_t number = 0;     // 24 bits
  uint32_t first_psn = 0;  // 24 bits
};

struct Endpoint {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint8_t queue_pairs = 1;
  uint8_t mtu = 0;  // enum ibv_mtu
  Gid gid = {};
  uint16_t lid = 0;
  uint8_t link_layer = 0;     // IBV_LINK_LAYER_*
  uint8_t reads = 1;          // that this end may have under way, and that it answers, at once
  uint8_t reads_of_peer = 1;  // on a queue pair; kMostReads at most
  uint8_t reserved[3] = {};
  Nonce nonce{};
  std::array<QueuePairName, kMaxQueuePairs> names = {};
  // Eight bytes that the peer reads behind its silent writes (lanes.h).
  uint64_t behind_writes = 0;
  uint32_t behind_writes_key = 0;
  uint32_t reserved_too = 0;
};
static_assert(sizeof(Endpoint) == 8 + 16 + 8 + 16 + 8 * kMaxQueuePairs + 16);
static_assert(sizeof(Endpoint) == sizeof(ChannelAddress));  // no byte is left but the reserved ones

struct Hello {
  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  uint16_t reserved = 0;
  Nonce from{}, to{};  // of the channels
};
static_assert(sizeof(Hello) == 40);
struct Hellos {
  alignas(64) Hello in, out;
  uint64_t behind_writes = 0;  // what was read there at the peer
};

inline ChannelAddress pack_endpoint(const Endpoint& endpoint) {
  ChannelAddress packed{};
  std::memcpy(packed.data(), &endpoint, sizeof endpoint);
  return packed;
}

// The error says what is wrong with an address that no channel of ours can have written.
inline Result<Endpoint> unpack_endpoint(const ChannelAddress& packed) {
  Endpoint endpoint;
  std::memcpy(&endpoint, packed.data(), sizeof endpoint);
  const bool sound = endpoint.magic == kMagic && endpoint.version == kVersion &&
                     endpoint.queue_pairs >= 1 && endpoint.queue_pairs <= kMaxQueuePairs &&
                     endpoint.mtu >= IBV_MTU_256 && endpoint.mtu <= IBV_MTU_4096 &&
                     endpoint.reads >= 1 && endpoint.reads <= kMostReads &&
                     endpoint.reads_of_peer >= 1 && endpoint.reads_of_peer <= kMostReads;
  if (sound) return endpoint;
  return fail(make_error(Status::kRemote, 0,
                         "this is no address of a verbs channel (magic 0x%x, version %u, ours is "
                         "%u); use the same libnet-slime on all hosts",
                         endpoint.magic, endpoint.version, kVersion));
}

}  // namespace slime::verbs
