// The receiving half of a tcp channel, fed by hand: any split of the stream gives the same works,
// and nothing hostile is written anywhere.
#include <algorithm>
#include <random>

#include "test/unit/tcp/support.h"
#include "transports/tcp/frame_reader.h"

namespace slime::tcp {
namespace {

constexpr uint64_t kMaxMessage = 1 << 20;
constexpr size_t kGuard = 64;  // bytes around the registered range that must stay untouched

// A registered range inside a larger buffer, and a reader behind a stream.
class FrameReaderTest : public testing::Test {
 protected:
  FrameReaderTest() : memory_(kGuard + kRange + kGuard, kUntouched) {
    key_ = *regions_.add({range(), kRange});
  }

  static constexpr size_t kRange = 300'000;
  static constexpr std::byte kUntouched{0xee};

  std::byte* range() { return memory_.data() + kGuard; }
  FrameHeader write_header(size_t offset, uint32_t length, uint32_t immediate = 0) {
    FrameHeader header;
    header.type = static_cast<uint8_t>(FrameType::kWrite);
    header.immediate = immediate;
    header.length = length;
    header.remote_address = reinterpret_cast<uint64_t>(range() + offset);
    header.remote_key = key_;
    return header;
  }
  bool untouched() const {
    return std::ranges::all_of(memory_, [](std::byte b) { return b == kUntouched; });
  }
  bool guards_untouched() const {
    const auto plain = [](std::byte b) { return b == kUntouched; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, plain) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), plain);
  }
  bool read(std::vector<Done>* arrivals, size_t room = 64) {
    std::vector<Done> done(room);
    size_t count = 0;
    const bool fine = reader_.read(stream_.reader.get(), done, &count);
    arrivals->insert(arrivals->end(), done.begin(), done.begin() + count);
    return fine;
  }

  RegionTable regions_;
  std::vector<std::byte> memory_;
  uint64_t key_ = 0;
  TestStream stream_;
  FrameReader reader_{regions_, kMaxMessage};
};

// Frames of all kinds whose payloads lie side by side in the range.
struct Script {
  std::vector<std::byte> stream;
  std::vector<uint32_t> lengths;
  std::vector<std::byte> expected;
};

Script make_script(const std::function<FrameHeader(size_t, uint32_t, uint32_t)>& header,
                   size_t lengths, std::mt19937& random) {
  Script script;
  for (uint32_t i = 0; i < 40; ++i) {
    const uint32_t kinds[] = {0, 1, 8, 32, 100, 5'000, 20'000};
    const uint32_t length = kinds[random() % lengths];
    std::vector<std::byte> payload(length);
    for (auto& byte : payload) byte = static_cast<std::byte>(random());
    FrameHeader write = header(script.expected.size(), length, i);
    write.ack = i;
    append_frame(&script.stream, write, payload);
    script.expected.insert(script.expected.end(), payload.begin(), payload.end());
    script.lengths.push_back(length);
    if (random() % 3 == 0) {
      FrameHeader ack;
      ack.type = static_cast<uint8_t>(FrameType::kAck);
      ack.ack = i;
      append_frame(&script.stream, ack, {});
    }
    if (script.expected.size() > 250'000) break;
  }
  return script;
}

TEST_F(FrameReaderTest, AnySplitGivesTheSameWorks) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::fill(memory_.begin(), memory_.end(), kUntouched);
    const bool tiny_pieces = seed < 6;
    const Script script =
        make_script([this](size_t o, uint32_t l, uint32_t i) { return write_header(o, l, i); },
                    tiny_pieces ? 5 : 7, random);
    FrameReader reader(regions_, kMaxMessage);
    std::vector<Done> arrivals;
    const size_t largest = seed == 0 ? 1 : tiny_pieces ? 40 : 30'000;  // seed 0: byte by byte
    for (size_t fed = 0; fed < script.stream.size();) {
      const size_t piece = std::min(1 + random() % largest, script.stream.size() - fed);
      stream_.write(std::span(script.stream).subspan(fed, piece));
      fed += piece;
      size_t count = 0;
      do {
        Done done[7];
        ASSERT_TRUE(
            reader.read(stream_.reader.get(), std::span(done).first(1 + random() % 7), &count));
        arrivals.insert(arrivals.end(), done, done + count);
      } while (count > 0 || !reader.drained());
    }
    ASSERT_EQ(arrivals.size(), script.lengths.size());
    EXPECT_EQ(reader.arrived(), arrivals.size());
    EXPECT_EQ(reader.bytes(), script.expected.size());
    EXPECT_EQ(reader.peer_ack(), arrivals.size() - 1);
    EXPECT_FALSE(reader.mid_frame());
    for (uint32_t i = 0; i < arrivals.size(); ++i) {
      EXPECT_EQ(arrivals[i].kind, Done::Kind::kArrived);
      EXPECT_EQ(arrivals[i].immediate, i);
      EXPECT_EQ(arrivals[i].bytes, script.lengths[i]);
    }
    EXPECT_TRUE(std::equal(script.expected.begin(), script.expected.end(), range()));
    EXPECT_TRUE(guards_untouched());
  }
}

TEST_F(FrameReaderTest, NeverReportsMoreThanThereIsRoomFor) {
  std::vector<std::byte> stream;
  for (uint32_t i = 0; i < 200; ++i) append_frame(&stream, write_header(0, 0, i), {});
  stream_.write(stream);
  std::vector<Done> arrivals;
  ASSERT_TRUE(read(&arrivals, 0));
  EXPECT_EQ(arrivals.size(), 0u);
  ASSERT_TRUE(read(&arrivals, 3));
  EXPECT_EQ(arrivals.size(), 3u);
  ASSERT_TRUE(read(&arrivals, 1000));
  EXPECT_EQ(arrivals.size(), 3 + FrameReader::kMaxArrivals);
  while (arrivals.size() < 200) ASSERT_TRUE(read(&arrivals));
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(arrivals[i].immediate, i);
}

TEST_F(FrameReaderTest, OneReadTakesAllThatThereIs) {
  constexpr uint32_t kFrames = 60, kBytes = 1'200;  // twice the staging buffer
  static_assert(kFrames * kBytes > 2 * FrameReader::kStagingBytes);
  std::vector<std::byte> stream;
  for (uint32_t i = 0; i < kFrames; ++i) {
    append_frame(&stream, write_header(i * kBytes, kBytes), std::vector<std::byte>(kBytes));
  }
  stream_.write(stream);
  std::vector<Done> arrivals;
  ASSERT_TRUE(read(&arrivals));
  EXPECT_EQ(arrivals.size(), kFrames);
  EXPECT_TRUE(reader_.drained());
}

TEST_F(FrameReaderTest, EndIsAFaultAfterTheArrivalsBeforeIt) {
  const std::vector<std::byte> payload(100, std::byte{1});
  std::vector<std::byte> stream;
  append_frame(&stream, write_header(0, 100), payload);
  append_frame(&stream, write_header(100, 100), payload);
  stream_.write(std::span(stream).first(stream.size() - 1));
  stream_.writer.reset();
  std::vector<Done> arrivals;
  while (read(&arrivals)) {
  }
  EXPECT_EQ(arrivals.size(), 1u);
  EXPECT_EQ(reader_.fault().kind, ReadFault::Kind::kEnded);
  EXPECT_TRUE(reader_.mid_frame());
}

TEST_F(FrameReaderTest, TellsUpToWhichWorkAnAcknowledgementIsAwaited) {
  std::vector<FrameHeader> headers(5, write_header(0, 0));
  headers[0].flags = headers[1].flags = headers[3].flags = headers[4].flags = kNeedsNoAck;
  std::vector<Done> arrivals;
  for (size_t i = 0; i < headers.size(); ++i) {
    stream_.write(std::as_bytes(std::span(&headers[i], 1)));
    ASSERT_TRUE(read(&arrivals));
    EXPECT_EQ(reader_.arrived(), i + 1);
    EXPECT_EQ(reader_.awaited(), i < 2 ? 0u : 3u);
  }
  EXPECT_EQ(arrivals.size(), headers.size());
}

struct Hostile {
  const char* name;
  ReadFault::Kind fault;
  void (*spoil)(FrameHeader* header, uint64_t range_bytes);
};

const Hostile kHostile[] = {
    {"magic", ReadFault::Kind::kNotAFrame, [](FrameHeader* h, uint64_t) { h->magic ^= 1; }},
    {"type 0", ReadFault::Kind::kNotAFrame, [](FrameHeader* h, uint64_t) { h->type = 0; }},
    {"type 3", ReadFault::Kind::kNotAFrame, [](FrameHeader* h, uint64_t) { h->type = 3; }},
    {"flags", ReadFault::Kind::kNotAFrame, [](FrameHeader* h, uint64_t) { h->flags = 0x80; }},
    {"acknowledgement that needs none", ReadFault::Kind::kNotAFrame,
     [](FrameHeader* h, uint64_t) {
       h->type = static_cast<uint8_t>(FrameType::kAck);
       h->length = 0;
       h->flags = kNeedsNoAck;
     }},
    {"acknowledgement with payload", ReadFault::Kind::kNotAFrame,
     [](FrameHeader* h, uint64_t) { h->type = static_cast<uint8_t>(FrameType::kAck); }},
    {"too long", ReadFault::Kind::kTooLong,
     [](FrameHeader* h, uint64_t) { h->length = kMaxMessage + 1; }},
    {"longest length", ReadFault::Kind::kTooLong,
     [](FrameHeader* h, uint64_t) { h->length = UINT32_MAX; }},
    {"key 0", ReadFault::Kind::kUnknownKey, [](FrameHeader* h, uint64_t) { h->remote_key = 0; }},
    {"generation", ReadFault::Kind::kUnknownKey,
     [](FrameHeader* h, uint64_t) { h->remote_key ^= uint64_t{1} << 40; }},
    {"index of a free slot", ReadFault::Kind::kUnknownKey,
     [](FrameHeader* h, uint64_t) { h->remote_key += 1; }},
    {"index without a chunk", ReadFault::Kind::kUnknownKey,
     [](FrameHeader* h, uint64_t) { h->remote_key += 100'000; }},
    {"index without a table", ReadFault::Kind::kUnknownKey,
     [](FrameHeader* h, uint64_t) { h->remote_key |= 0xffffffff; }},
    {"one byte before", ReadFault::Kind::kOutOfBounds,
     [](FrameHeader* h, uint64_t) { h->remote_address -= 1; }},
    {"one byte behind", ReadFault::Kind::kOutOfBounds,
     [](FrameHeader* h, uint64_t bytes) { h->remote_address += bytes - h->length + 1; }},
    {"far behind", ReadFault::Kind::kOutOfBounds,
     [](FrameHeader* h, uint64_t bytes) { h->remote_address += bytes + 1; }},
    {"address 0", ReadFault::Kind::kOutOfBounds,
     [](FrameHeader* h, uint64_t) { h->remote_address = 0; }},
    {"wraps around", ReadFault::Kind::kOutOfBounds,
     [](FrameHeader* h, uint64_t) { h->remote_address = UINT64_MAX - 10; }},
};

class HostileFrame : public FrameReaderTest, public testing::WithParamInterface<Hostile> {};

TEST_P(HostileFrame, WritesNothing) {
  for (const bool in_pieces : {false, true}) {
    TestStream stream;
    FrameReader reader(regions_, kMaxMessage);
    FrameHeader header = write_header(0, 5'000);
    GetParam().spoil(&header, kRange);
    std::vector<std::byte> bytes;
    append_frame(&bytes, header, std::vector<std::byte>(5'000, std::byte{1}));
    const size_t first = in_pieces ? kFrameHeaderBytes : bytes.size();
    stream.write(std::span(bytes).first(first));
    Done done[8];
    size_t count = 0;
    bool fine = reader.read(stream.reader.get(), done, &count);
    if (fine) {
      stream.write(std::span(bytes).subspan(first));
      fine = reader.read(stream.reader.get(), done, &count);
    }
    EXPECT_FALSE(fine);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(reader.fault().kind, GetParam().fault);
    EXPECT_TRUE(untouched());
  }
}

std::string hostile_name(const testing::TestParamInfo<Hostile>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(TcpFrames, HostileFrame, testing::ValuesIn(kHostile), hostile_name);

TEST_F(FrameReaderTest, ExactlyTheRangeIsAllowed) {
  std::vector<std::byte> stream;
  append_frame(&stream, write_header(0, kRange), std::vector<std::byte>(kRange, std::byte{7}));
  std::vector<Done> arrivals;
  for (size_t fed = 0; fed < stream.size(); fed += 50'000) {
    stream_.write(std::span(stream).subspan(fed, std::min<size_t>(50'000, stream.size() - fed)));
    ASSERT_TRUE(read(&arrivals));
  }
  EXPECT_EQ(arrivals.size(), 1u);
  EXPECT_TRUE(guards_untouched());
  EXPECT_TRUE(
      std::all_of(range(), range() + kRange, [](std::byte b) { return b == std::byte{7}; }));
}

TEST_F(FrameReaderTest, AnEmptyWorkNeedsNoMemory) {
  FrameHeader header = write_header(0, 0, 77);
  header.remote_key = 1234;
  header.remote_address = 1;
  std::vector<std::byte> stream;
  append_frame(&stream, header, {});
  stream_.write(stream);
  std::vector<Done> arrivals;
  ASSERT_TRUE(read(&arrivals));
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_EQ(arrivals[0].immediate, 77u);
}

TEST_F(FrameReaderTest, DeregisteringInTheMiddleOfAWorkStopsIt) {
  std::vector<std::byte> stream;
  append_frame(&stream, write_header(0, 60'000), std::vector<std::byte>(60'000, std::byte{9}));
  stream_.write(std::span(stream).first(20'000));
  std::vector<Done> arrivals;
  ASSERT_TRUE(read(&arrivals));
  ASSERT_TRUE(regions_.remove(key_));
  std::fill(memory_.begin(), memory_.end(), kUntouched);
  stream_.write(std::span(stream).subspan(20'000));
  EXPECT_FALSE(read(&arrivals));
  EXPECT_EQ(reader_.fault().kind, ReadFault::Kind::kUnknownKey);
  EXPECT_TRUE(arrivals.empty());
  EXPECT_TRUE(untouched());
}

TEST(TcpCopyAscending, CopiesEveryLengthAndAlignment) {
  std::vector<std::byte> from(128), to(128);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  for (size_t start = 0; start < 16; ++start) {
    for (size_t bytes = 0; bytes < 64; ++bytes) {
      std::fill(to.begin(), to.end(), std::byte{0});
      copy_ascending(&to[start], &from[3], bytes);
      ASSERT_TRUE(std::equal(&from[3], &from[3] + bytes, &to[start]));
      ASSERT_EQ(to[start + bytes], std::byte{0});
      ASSERT_TRUE(start == 0 || to[start - 1] == std::byte{0});
    }
  }
}

}  // namespace
}  // namespace slime::tcp
