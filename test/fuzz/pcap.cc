// Packet captures: what is read is written again to packets that read the same.
#include "test/support/pcap.h"

#include "test/fuzz/support/target.h"

namespace slime::test {

SLIME_FUZZ_TARGET(pcap, input) {
  const auto packets = read_pcap(input.rest());
  if (!packets) {
    FUZZ_CHECK(packets.error().what.starts_with("capture, packet "));
    return;
  }
  const auto again = read_pcap(write_pcap(*packets));
  FUZZ_CHECK(again && *again == *packets);
}

}  // namespace slime::test
