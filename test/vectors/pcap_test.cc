// The reader of captures: damaged and hostile files give an error that names the packet.
#include "test/support/pcap.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/vectors/vector.h"

namespace slime::test {
namespace {

std::vector<CapturedPacket> some_packets() {
  const auto from = *SocketAddress::parse("127.77.1.1:4000"),
             to = *SocketAddress::parse("127.77.0.1:1");
  return {{1'000'001, from, to, std::vector<std::byte>(5, std::byte{7})},
          {2'500'000, to, from, {}},
          {3'000'000, from, to, std::vector<std::byte>(1400, std::byte{0xff})}};
}

TEST(Pcap, ReadsWhatItWrites) {
  const auto packets = some_packets();
  const auto read = read_pcap(write_pcap(packets));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_TRUE(*read == packets);
}

TEST(Pcap, RefusesEveryFileThatIsCutShort) {
  const auto file = write_pcap(some_packets());
  const size_t ends[] = {24, 24 + 16 + 33, 24 + 16 + 33 + 16 + 28};  // between packets
  for (size_t size = 0; size < file.size(); ++size) {
    const bool between = std::ranges::find(ends, size) != std::end(ends);
    EXPECT_EQ(read_pcap(std::span(file).first(size)).has_value(), between) << size;
  }
}

// Checksums see any bit of a packet; the bits of times and of what nobody reads may differ.
TEST(Pcap, SeesEveryFlippedBitOfAPacket) {
  const auto packets = some_packets();
  const auto file = write_pcap(std::span(packets).first(1));
  for (size_t at = 24 + 8; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = file;
      damaged[at] ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(read_pcap(damaged)) << "byte " << at << " bit " << bit;
    }
  }
}

TEST(Pcap, NamesThePacketThatIsWrong) {
  auto file = write_pcap(some_packets());
  file[24 + 16 + 33 + 8] = std::byte{0xff};  // length of the second
  const auto read = read_pcap(file);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().what, "capture, packet 2: it was not captured whole");
}

TEST(Job, RefusesWhatItDoesNotUnderstand) {
  const std::string sound = "switch 127.0.0.1:9\njob 1\nslots 1\nlanes 1\nchild 127.0.0.1:8\n";
  EXPECT_TRUE(vectors::parse_job("x", sound));
  for (const char* line :
       {"shards 0", "shards 17", "slots -1", "slots 70000", "lanes 4096", "child nowhere",
        "child 127.0.0.1", "colour red", "parent 127.0.0.1:1"}) {
    EXPECT_FALSE(vectors::parse_job("x", sound + line + "\n")) << line;
  }
  EXPECT_FALSE(vectors::parse_job("x", "job 1\n"));
}

}  // namespace
}  // namespace slime::test
