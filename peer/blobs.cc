#include "peer/blobs.h"

#include <bit>
#include <cstring>
#include <utility>

#include "link/setup/handshake.h"
#include "transports/rail.h"

namespace slime {
namespace {

constexpr uint32_t kEngineMagic = 0x534c4531;  // "SLE1": also the version
constexpr uint32_t kRegionMagic = 0x534c5231;  // "SLR1"

struct EngineWire {
  uint32_t magic = kEngineMagic;
  uint32_t check = 0;
  EngineId engine = {};
  LinkAddress listener = {};
};

struct RegionWire {
  uint32_t magic = kRegionMagic;
  uint8_t rights = 0, in_device = 0;
  std::array<uint8_t, 2> unused = {};
  EngineId engine = {};
  uint64_t region = 0, nonce = 0, base = 0, bytes = 0;
  uint32_t check = 0, unused_too = 0;
};
static_assert(sizeof(RegionWire) == kRegionBlobBytes);

// FNV-1a, of bytes that were cut or changed on the way. It keeps nobody out; nonces do.
template <typename Wire>
uint32_t checksum(Wire wire) {
  wire.check = 0;
  uint32_t sum = 2166136261;
  for (const std::byte byte : std::as_bytes(std::span(&wire, 1))) {
    sum = (sum ^ std::to_integer<uint32_t>(byte)) * 16777619;
  }
  return sum;
}

template <typename Wire>
Result<Wire> read(std::span<const std::byte> blob, const char* what) {
  const Wire expected;
  Wire wire;
  if (blob.size() != sizeof wire) {
    return fail(Status::kInvalid, "%s of %zu bytes, not %zu: pass all bytes that the call wrote",
                what, blob.size(), sizeof wire);
  }
  std::memcpy(&wire, blob.data(), sizeof wire);
  if (wire.magic != expected.magic) {
    return fail(Status::kInvalid,
                "these bytes are no %s of this version of libnet-slime (they begin with 0x%x, "
                "not 0x%x); use the same version in all processes",
                what, wire.magic, expected.magic);
  }
  if (wire.check != checksum(wire)) {
    return fail(Status::kInvalid, "the %s was changed on its way (its checksum does not fit)",
                what);
  }
  return wire;
}

}  // namespace

Nonce nonce_of(const LinkAddress& listener) { return std::bit_cast<AddressFields>(listener).nonce; }

std::vector<std::byte> pack(const EngineAddress& address) {
  EngineWire wire;
  wire.engine = address.engine;
  wire.listener = address.listener;
  wire.check = checksum(wire);
  const auto bytes = std::as_bytes(std::span(&wire, 1));
  return {bytes.begin(), bytes.end()};
}

Result<EngineAddress> unpack_engine(std::span<const std::byte> blob) {
  auto wire = read<EngineWire>(blob, "address of an engine");
  if (!wire) return fail(std::move(wire.error()));
  return EngineAddress{wire->engine, wire->listener};
}

RegionBlob pack(const RegionAddress& address) {
  RegionWire wire;
  wire.rights = address.rights;
  wire.in_device = address.in_device ? 1 : 0;
  wire.engine = address.engine;
  wire.region = address.region;
  wire.nonce = address.nonce;
  wire.base = address.base;
  wire.bytes = address.bytes;
  wire.check = checksum(wire);
  return std::bit_cast<RegionBlob>(wire);
}

Result<RegionAddress> unpack_region(std::span<const std::byte> blob) {
  auto wire = read<RegionWire>(blob, "address of a region");
  if (!wire) return fail(std::move(wire.error()));
  const bool wraps = wire->base + wire->bytes < wire->base;
  const bool has_more = wire->unused != decltype(wire->unused)() || wire->unused_too != 0;
  if (wraps || has_more || wire->bytes == 0 || wire->in_device > 1 ||
      (wire->rights & ~(kRemoteWrite | kRemoteRead)) != 0) {
    return fail(Status::kInvalid, "the address of a region names no region");
  }
  return RegionAddress{wire->engine, wire->region, wire->nonce,         wire->base,
                       wire->bytes,  wire->rights, wire->in_device == 1};
}

}  // namespace slime
