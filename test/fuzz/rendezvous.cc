// What ranks and whoever connects say at a rendezvous.
#include "rendezvous/messages.h"
#include "test/fuzz/support/target.h"

namespace slime::rendezvous {

SLIME_FUZZ_TARGET(rendezvous, input) {
  const auto type = static_cast<MessageType>(input.below(4));
  const uint32_t ranks = input.below(40);
  const auto bytes = input.bytes(64 << 10);
  if (const char* fault = fault_of(bytes, type); fault == nullptr && bytes.size() >= 8) {
    const Prefix wanted{.type = type};
    FUZZ_CHECK(std::ranges::equal(bytes.first(sizeof wanted), bytes_of(wanted)));
  }
  const auto blobs = unpack_blobs(bytes, ranks);
  if (!blobs) return;
  FUZZ_CHECK(blobs->size() == ranks);
  FUZZ_CHECK(std::ranges::equal(pack_blobs(*blobs), bytes));
}

}  // namespace slime::rendezvous
