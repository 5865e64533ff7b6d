// SAP/2 packets: what decodes encodes to the same bytes, and the check verifies what it made.

#include "test/fuzz/support/target.h"
#include "test/support/check_oracle.h"

namespace slime::sap {

SLIME_FUZZ_TARGET(sap, input) {
  const auto datagram = input.rest();
  Header header;
  header.cookie = 0x5eed;
  const Fault fault = decode(datagram, &header);
  FUZZ_CHECK(fault <= Fault::kField);
  if (fault != Fault::kNone) {
    FUZZ_CHECK(header.cookie == 0x5eed && header.lanes == 0);
    return;
  }
  FUZZ_CHECK(datagram.size() == kHeaderBytes + 4 * size_t{header.lanes});
  FUZZ_CHECK(datagram.size() <= kMaxPacketBytes && header.child < kMaxChildren);
  std::byte again[kHeaderBytes];
  encode(header, again);
  FUZZ_CHECK(std::memcmp(again, datagram.data(), kHeaderBytes) == 0);

  const auto payload = datagram.subspan(kHeaderBytes);
  std::vector<uint32_t> words;
  for (size_t at = 0; at < payload.size(); at += 4) words.push_back(wire::get32(&payload[at]));
  const uint32_t check = check_of(header.format, payload, salt(header));
  FUZZ_CHECK(check == check_of(header.format, std::span<const uint32_t>(words), salt(header)));
  FUZZ_CHECK(verifies(header.format, payload, check, salt(header), all_ranks(1)));
  if (payload.empty() || width_of(header.format) == 64) return;
  std::vector<std::byte> flipped(payload.begin(), payload.end());
  flipped[header.epoch % flipped.size()] ^= static_cast<std::byte>(1u << (header.cookie & 7));
  FUZZ_CHECK(!verifies(header.format, flipped, check, salt(header), all_ranks(1)));
}

}  // namespace slime::sap
