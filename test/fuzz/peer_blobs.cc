// What programs carry between engines, and what engines say first: whatever passes the checks can
// be worked with, and is what the other end has packed.
#include <algorithm>
#include <cstring>

#include "peer/blobs.h"
#include "peer/owner.h"
#include "test/fuzz/support/target.h"

namespace slime {

template <typename Struct>
static Struct any(fuzz::Input& input) {
  Struct value;
  std::array<std::byte, sizeof value> all = {};
  const auto bytes = input.bytes(sizeof value);
  std::copy(bytes.begin(), bytes.end(), all.begin());
  std::memcpy(static_cast<void*>(&value), all.data(), sizeof value);
  return value;
}

static void check_region(std::span<const std::byte> blob) {
  const auto region = unpack_region(blob);
  if (!region) return;
  FUZZ_CHECK(region->bytes <= UINT64_MAX - region->base);
  FUZZ_CHECK((region->rights & ~(kRemoteRead | kRemoteWrite)) == 0);
  FUZZ_CHECK(std::ranges::equal(pack(*region), blob));
}

static void check_engine(std::span<const std::byte> blob) {
  const auto engine = unpack_engine(blob);
  FUZZ_CHECK(!engine || std::ranges::equal(pack(*engine), blob));
}

// A blob that was packed, with a few bytes changed, or cut.
static std::vector<std::byte> spoilt(std::span<const std::byte> packed, fuzz::Input& input) {
  std::vector<std::byte> blob(packed.begin(), packed.end());
  for (uint32_t edits = input.below(3); edits > 0; --edits) {
    blob[input.below(static_cast<uint32_t>(blob.size()))] ^= std::byte{input.take<uint8_t>()};
  }
  blob.resize(blob.size() - input.below(2));
  return blob;
}

SLIME_FUZZ_TARGET(peer_blobs, input) {
  switch (input.below(4)) {
    case 0: {
      RegionAddress region{any<EngineId>(input),   input.take<uint64_t>(), input.take<uint64_t>(),
                           input.take<uint64_t>(), input.take<uint64_t>(), input.take<uint8_t>()};
      return check_region(spoilt(pack(region), input));
    }
    case 1: {
      const EngineAddress address{any<EngineId>(input), any<LinkAddress>(input)};
      return check_engine(spoilt(pack(address), input));
    }
    case 2: {
      const auto bytes = input.bytes(input.below(300));
      check_region(bytes);
      return check_engine(bytes);
    }
    default: {
      const PollerLists none(1);
      const EngineOwner owner({}, {}, {}, none, EngineOwner::Wanted{});
      const auto offer = any<OwnerWords>(input);
      const auto answer = owner.answer(offer);
      FUZZ_CHECK(!answer || owner.channel_depth(*answer) > 0);
      FUZZ_CHECK(!answer || owner.channel_depth(*answer) <= LinkTerms().depth);
      (void)owner.accepts(offer);
    }
  }
}

}  // namespace slime
