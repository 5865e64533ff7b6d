// The receiving half of a tcp channel, fed by hand: any split of the stream gives the same works,
// and nothing hostile is written anywhere.
#include <algorithm>
#include <optional>
#include <random>

#include "test/unit/tcp/support.h"
#include "transports/tcp/frames/frame_reader.h"

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
    header.flags = kNeedsNoAck;  // so a wrong one is a fault
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
  TestReader parts_{regions_, kMaxMessage};
  FrameReader& reader_ = parts_.reader;
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
    TestReader parts(regions_, kMaxMessage);
    FrameReader& reader = parts.reader;
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
    EXPECT_EQ(reader.placed_bytes(), script.expected.size());
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
  EXPECT_EQ(arrivals.size(), 3 + FrameReader::kMaxDone);
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
  headers[2].flags = 0;
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

void become(FrameHeader* header, FrameType type, uint32_t length = UINT32_MAX) {
  header->type = static_cast<uint8_t>(type);
  header->flags = 0;
  if (length != UINT32_MAX) header->length = length;
}

const Hostile kHostile[] = {
    {"magic", ReadFault::Kind::kNotAFrame, [](FrameHeader* h, uint64_t) { h->magic ^= 1; }},
    {"type 0", ReadFault::Kind::kNotAFrame, [](FrameHeader* h, uint64_t) { h->type = 0; }},
    {"type 9", ReadFault::Kind::kNotAFrame, [](FrameHeader* h, uint64_t) { h->type = 9; }},
    {"end of no read", ReadFault::Kind::kNotOfOurs,
     [](FrameHeader* h, uint64_t) { become(h, FrameType::kReadDone, 0); }},
    {"answer to no read", ReadFault::Kind::kNotOfOurs,
     [](FrameHeader* h, uint64_t) { become(h, FrameType::kAnswer); }},
    {"refusal of no read", ReadFault::Kind::kNotOfOurs,
     [](FrameHeader* h, uint64_t) { become(h, FrameType::kReadRefused, 0); }},
    {"refusal of no write", ReadFault::Kind::kNotOfOurs,
     [](FrameHeader* h, uint64_t) { become(h, FrameType::kRefused, 0); }},
    {"refusal with payload", ReadFault::Kind::kNotAFrame,
     [](FrameHeader* h, uint64_t) { become(h, FrameType::kRefused); }},
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
    TestReader parts(regions_, kMaxMessage);
    FrameReader& reader = parts.reader;
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

TEST_F(FrameReaderTest, ARangeThatPeersMayNotWriteIntoIsNotWritten) {
  std::vector<std::byte> memory(100);
  MemoryRange range{memory.data(), memory.size()};
  range.rights = kRemoteRead;
  FrameHeader header = write_header(0, 8);
  header.remote_key = *regions_.add(range);
  header.remote_address = reinterpret_cast<uint64_t>(memory.data());
  std::vector<std::byte> stream;
  append_frame(&stream, header, std::vector<std::byte>(8, std::byte{7}));
  stream_.write(stream);
  std::vector<Done> arrivals;
  EXPECT_FALSE(read(&arrivals));
  EXPECT_EQ(reader_.fault().kind, ReadFault::Kind::kNoRight);
  EXPECT_EQ(std::ranges::count(memory, std::byte{7}), 0);
}

TEST_F(FrameReaderTest, MoreReadsThanMayBeOutstandingAreAFault) {
  std::vector<std::byte> stream;
  FrameHeader header = write_header(0, 8);
  header.type = static_cast<uint8_t>(FrameType::kRead);
  header.flags = 0;
  for (uint32_t i = 0; i < kMaxReads; ++i) append_frame(&stream, header, {});
  stream_.write(stream);
  std::vector<Done> done;
  EXPECT_TRUE(read(&done));
  stream_.write(std::span(stream).first(kFrameHeaderBytes));
  EXPECT_FALSE(read(&done));
  EXPECT_EQ(reader_.fault().kind, ReadFault::Kind::kTooManyReads);
}

// The frames that come for a read of 100 bytes. `asked`: its request has been sent.
TEST_F(FrameReaderTest, AReadEndsOnceAndByTheRightFrames) {
  using enum FrameType;
  using Frames = std::vector<std::pair<FrameType, uint32_t>>;  // with their lengths
  const Frames all = {{kAnswer, 60}, {kAnswer, 40}, {kReadDone, 0}};
  struct {
    const char* name;
    Frames frames;
    bool asked = true;
    ReadFault::Kind fault = ReadFault::Kind::kNone;
    std::optional<Done::Kind> end = {};
    bool local_range_goes = false;
  } const kCases[] = {
      {"all", all, true, ReadFault::Kind::kNone, Done::Kind::kSent},
      {"not its end", {{kAnswer, 100}}},
      {"the end too early", {{kAnswer, 99}, {kReadDone, 0}}, true, ReadFault::Kind::kNotAFrame},
      {"the end with bytes", {{kAnswer, 99}, {kReadDone, 1}}, true, ReadFault::Kind::kNotAFrame},
      {"the end twice",
       {{kAnswer, 100}, {kReadDone, 0}, {kReadDone, 0}},
       true,
       ReadFault::Kind::kNotOfOurs,
       Done::Kind::kSent},
      {"more behind the end",
       {{kAnswer, 100}, {kReadDone, 0}, {kAnswer, 1}},
       true,
       ReadFault::Kind::kNotOfOurs,
       Done::Kind::kSent},
      {"too long", {{kAnswer, 101}}, true, ReadFault::Kind::kNotAFrame},
      {"too long in two frames", {{kAnswer, 60}, {kAnswer, 41}}, true, ReadFault::Kind::kNotAFrame},
      {"empty", {{kAnswer, 0}}, true, ReadFault::Kind::kNotAFrame},
      {"before it was asked", all, false, ReadFault::Kind::kNotOfOurs},
      {"refused", {{kReadRefused, 0}}, true, ReadFault::Kind::kNone, Done::Kind::kRefused},
      {"refused behind all bytes",
       {{kAnswer, 100}, {kReadRefused, 0}},
       true,
       ReadFault::Kind::kNone,
       Done::Kind::kRefused},
      {"refused with bytes", {{kReadRefused, 100}}, true, ReadFault::Kind::kNotAFrame},
      {"refused unasked", {{kReadRefused, 0}}, false, ReadFault::Kind::kNotOfOurs},
      {"its place here is gone", all, true, ReadFault::Kind::kNone, Done::Kind::kRefused, true},
  };
  for (const auto& each : kCases) {
    SCOPED_TRACE(each.name);
    TestReader parts(regions_, kMaxMessage);
    std::vector<std::byte> to(100);
    const uint64_t key = *regions_.add({to.data(), to.size()});
    Work work;
    work.opcode = Opcode::kRead;
    work.local = to.data();
    work.local_key = key;
    work.length = 100;
    parts.queue.control().push(parts.reads.begin(work));
    if (each.asked) {
      (void)parts.queue.gather(0, 0, true);
      parts.queue.moved(parts.queue.gathered());
    }
    if (each.local_range_goes) {
      EXPECT_TRUE(regions_.remove(key));
    }
    std::vector<std::byte> stream;
    for (const auto& [type, length] : each.frames) {
      FrameHeader header;
      header.type = static_cast<uint8_t>(type);
      header.length = length;
      append_frame(&stream, header, std::vector<std::byte>(length, std::byte{7}));
    }
    TestStream own;
    own.write(stream);
    std::array<Done, 4> done;
    size_t count = 0;
    EXPECT_EQ(parts.reader.read(own.reader.get(), done, &count),
              each.fault == ReadFault::Kind::kNone);
    EXPECT_EQ(parts.reader.fault().kind, each.fault);
    ASSERT_EQ(count, each.end ? 1u : 0u);
    if (each.end) {
      EXPECT_EQ(done[0].kind, *each.end);
    }
    const bool whole = each.end == Done::Kind::kSent;
    if (whole) {
      EXPECT_EQ(std::ranges::count(to, std::byte{7}), 100);
    }
    if (each.local_range_goes) {
      EXPECT_EQ(std::ranges::count(to, std::byte{7}), 0);
    }
  }
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

// Somebody waits for the answer to this write, so it is refused, and nothing else.
TEST_F(FrameReaderTest, AWrongWriteThatIsAnsweredIsThrownAwayAndRefused) {
  std::vector<std::byte> stream;
  const std::vector<std::byte> payload(60'000, std::byte{9});
  for (uint32_t i = 0; i < 5; ++i) {
    FrameHeader header = write_header(0, i == 3 ? 100 : 60'000, i);
    header.flags = 0;
    if (i % 2 == 1) header.remote_key ^= 1ull << 40;
    if (i == 4) header.remote_address += kRange - 59'999;
    append_frame(&stream, header, std::span(payload).first(header.length));
  }
  std::vector<Done> arrivals;
  for (size_t fed = 0; fed < stream.size(); fed += 7'000) {
    stream_.write(std::span(stream).subspan(fed, std::min<size_t>(7'000, stream.size() - fed)));
    do {
      ASSERT_TRUE(read(&arrivals));
    } while (!reader_.drained());
  }
  ASSERT_EQ(arrivals.size(), 2u);
  EXPECT_EQ(arrivals[1].immediate, 2u);
  EXPECT_EQ(reader_.arrived(), 5u);
  EXPECT_EQ(reader_.awaited(), 5u);
  const auto frames = parts_.queue.control().bytes(reader_.arrived());
  std::vector<FrameHeader> refusals(frames.size() / kFrameHeaderBytes);
  std::memcpy(refusals.data(), frames.data(), frames.size());
  ASSERT_EQ(refusals.size(), 3u);
  for (const FrameHeader& refusal : refusals) {
    EXPECT_EQ(refusal.type, static_cast<uint8_t>(FrameType::kRefused));
  }
  EXPECT_EQ(refusals[0].immediate, 2u);
  EXPECT_EQ(refusals[1].immediate, 4u);
  EXPECT_EQ(refusals[2].immediate, 5u);
  EXPECT_TRUE(guards_untouched());
}

TEST_F(FrameReaderTest, MemoryThatGoesInTheMiddleOfAnAnsweredWriteRefusesIt) {
  FrameHeader header = write_header(0, 60'000);
  header.flags = 0;
  std::vector<std::byte> stream;
  append_frame(&stream, header, std::vector<std::byte>(60'000, std::byte{9}));
  stream_.write(std::span(stream).first(20'000));
  std::vector<Done> arrivals;
  ASSERT_TRUE(read(&arrivals));
  ASSERT_TRUE(regions_.remove(key_));
  std::fill(memory_.begin(), memory_.end(), kUntouched);
  stream_.write(std::span(stream).subspan(20'000));
  while (reader_.arrived() == 0) ASSERT_TRUE(read(&arrivals));
  EXPECT_TRUE(arrivals.empty());
  EXPECT_FALSE(parts_.queue.control().empty());
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
