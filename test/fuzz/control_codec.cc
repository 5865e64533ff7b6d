// Messages of the control channel: what is taken in can be sent again, to the same bytes.

#include <algorithm>

#include "switch/protocol/frames.h"
#include "test/fuzz/support/target.h"

namespace slime::control {

SLIME_FUZZ_TARGET(control_codec, input) {
  const size_t most = input.below(2) ? kMaxRequestBytes : kMaxAnswerBytes;
  const auto bytes = input.rest();
  const auto header = decode_header(bytes.first(std::min(bytes.size(), kHeaderBytes)), most);
  if (!header) return;
  FUZZ_CHECK(bytes.size() >= kHeaderBytes && header->payload_bytes <= most);
  // A frame cut short is another length's payload: nothing but the payload decides.
  const auto payload = bytes.subspan(kHeaderBytes);
  const auto message = decode_payload(header->type, payload);
  if (!message) {
    FUZZ_CHECK(!message.error().what.empty());
    return;
  }
  FUZZ_CHECK(type_of(*message) == header->type);
  const auto frame = encode(*message, header->sequence);
  const auto header_again = decode_header(std::span(frame).first(kHeaderBytes), kMaxAnswerBytes);
  FUZZ_CHECK(header_again && header_again->type == header->type &&
             header_again->sequence == header->sequence &&
             header_again->payload_bytes == payload.size());
  FUZZ_CHECK(frame.size() == kHeaderBytes + payload.size() + kMacBytes);
  const auto payload_again = std::span(frame).subspan(kHeaderBytes, payload.size());
  const bool rewritten = header->type == Type::kRefused;  // made printable
  FUZZ_CHECK(rewritten || std::ranges::equal(payload, payload_again));
  if (const auto* refused = std::get_if<Refused>(&*message)) {
    for (const char c : refused->text) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20);
  }
  FUZZ_CHECK(decode_payload(header->type, payload_again));
}

}  // namespace slime::control
