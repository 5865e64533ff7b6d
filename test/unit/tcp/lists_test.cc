// Short silent writes whose headers leave together: from the sending half of a channel, in any
// cuts, to the receiving half.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "test/unit/tcp/support.h"
#include "transports/tcp/frames/send_queue.h"

namespace slime::tcp {
namespace {

constexpr uint32_t kDepth = 256;
constexpr size_t kSlot = 4096, kLong = 40'000;
constexpr uint64_t kMaxMessage = 2 << 20;

// Memory of both ends, and what the kernel would carry between them.
class TcpLists : public testing::Test {
 protected:
  TcpLists() : from_(kBytes), to_(kBytes) {
    std::mt19937 random(1);
    for (std::byte& byte : from_) byte = static_cast<std::byte>(random());
    key_ = *regions_.add({to_.data(), kBytes});
  }

  static constexpr size_t kBytes = 4 << 20;

  Work work(Opcode opcode, size_t offset, uint32_t length) {
    Work work;
    work.opcode = opcode;
    work.local = from_.data() + offset;
    work.length = length;
    work.remote_address = reinterpret_cast<uint64_t>(to_.data() + offset);
    work.remote_key = key_;
    return work;
  }
  std::vector<Work> short_writes(uint32_t count) {
    std::vector<Work> works;
    for (uint32_t i = 0; i < count; ++i) works.push_back(work(Opcode::kWrite, i * kSlot, 1000));
    return works;
  }
  // Of what is gathered the kernel takes so many bytes.
  size_t send(size_t most) {
    std::vector<std::byte> taken;
    for (const iovec& vector : queue_.gather(0, 0, true)) {
      if (taken.size() < most && begins_list(vector)) ++lists_;
      const auto* from = static_cast<const std::byte*>(vector.iov_base);
      taken.insert(taken.end(), from, from + std::min(vector.iov_len, most - taken.size()));
    }
    queue_.moved(taken.size());
    if (!taken.empty()) stream_.write(taken);
    return taken.size();
  }
  bool receive(size_t room = 64) {
    std::vector<Done> done(room);
    size_t count = 0;
    do {
      if (!reader_.read(stream_.reader.get(), done, &count)) return false;
      arrived_ += count;
    } while (count > 0 || !reader_.drained());
    return true;
  }
  void send_all(size_t most = SIZE_MAX) {
    while (send(most) > 0) ASSERT_TRUE(receive());
  }
  // As if they had been sent: only so many may wait.
  void drop_refusals() {
    ControlFrames& control = parts_.queue.control();
    if (!control.empty()) (void)control.moved(control.bytes(0).size());
  }
  static void set_type(FrameHeader* header, FrameType type) {
    header->type = static_cast<uint8_t>(type);
  }
  static FrameHeader ack() {
    FrameHeader header;
    set_type(&header, FrameType::kAck);
    return header;
  }
  static bool begins_list(const iovec& vector) {
    FrameHeader header;
    std::memcpy(&header, vector.iov_base, std::min(vector.iov_len, sizeof header));
    return header.magic == kFrameMagic && header.type == static_cast<uint8_t>(FrameType::kList);
  }
  bool has_come(const Work& work) const {
    return std::equal(work.local, work.local + work.length,
                      reinterpret_cast<const std::byte*>(work.remote_address));
  }

  RegionTable regions_;
  std::vector<std::byte> from_, to_;
  uint64_t key_ = 0;
  TestStream stream_;
  SendQueue queue_{kDepth, true, kMaxReads};
  TestReader parts_{regions_, kMaxMessage};
  FrameReader& reader_ = parts_.reader;
  size_t arrived_ = 0;  // of writes with immediates
  size_t lists_ = 0;    // of which the kernel has taken the beginning
};

TEST_F(TcpLists, ManyShortWritesHaveOneBlockOfHeaders) {
  const auto works = short_writes(kMostListed + WriteList::kLeast - 1);
  queue_.append(works);
  const auto vectors = queue_.gather(7, 7, true);
  ASSERT_EQ(vectors.size(), 1 + kMostListed) << "the others leave with the next call";
  EXPECT_EQ(vectors[0].iov_len, (1 + kMostListed) * kFrameHeaderBytes);
  FrameHeader head;
  std::memcpy(&head, vectors[0].iov_base, sizeof head);
  EXPECT_TRUE(begins_list(vectors[0]));
  EXPECT_EQ(head.immediate, kMostListed);
  EXPECT_EQ(head.length, kMostListed * 1000);
  EXPECT_EQ(head.ack, 7u);
  queue_.moved(queue_.gathered());
  EXPECT_EQ(queue_.gather(7, 7, true).size(), 2 * (WriteList::kLeast - 1)) << "too few for a list";
}

TEST_F(TcpLists, OnlyShortWritesAreListed) {
  constexpr uint32_t kMostShort = 32 << 10;
  std::vector<Work> works(WriteList::kLeast, work(Opcode::kWrite, 0, kMostShort));
  works.push_back(work(Opcode::kWrite, 0, kMostShort + 1));
  queue_.append(works);
  const auto vectors = queue_.gather(0, 0, true);
  ASSERT_EQ(vectors.size(), 1 + WriteList::kLeast + 2) << "the last has a header of its own";
  EXPECT_EQ(vectors[0].iov_len, (1 + WriteList::kLeast) * kFrameHeaderBytes);
  EXPECT_TRUE(begins_list(vectors[0]));
}

TEST_F(TcpLists, AnyCutGivesTheSameMemory) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::ranges::fill(to_, std::byte{0});
    std::vector<Work> works;
    size_t immediates = 0, offset = 0;
    for (int i = 0; i < 200 && offset + kLong < kBytes; ++i) {
      const bool silent = random() % 20 != 0;
      const uint32_t kinds[] = {1, 8, 700, 4096, kLong, 0};
      const size_t among = random() % 8 == 0 ? 6 : 4;
      const uint32_t length = kinds[random() % among];
      works.push_back(work(silent ? Opcode::kWrite : Opcode::kWriteWithImmediate, offset, length));
      immediates += silent ? 0 : 1;
      offset += length + random() % 64;
    }
    queue_.append(works);
    arrived_ = 0;
    const uint32_t before = reader_.arrived();
    const size_t lists_before = lists_;
    const size_t largest = seed % 4 == 0 ? 50 : seed % 4 == 1 ? 3'000 : 90'000;
    while (send(1 + random() % largest) > 0) {
      const bool waits = largest < 10'000 && random() % 3 != 0;
      const bool fine = waits || receive(1 + random() % 7);
      ASSERT_TRUE(fine);
      if (queue_.control().empty() && random() % 5 == 0) queue_.control().push(ack());
    }
    ASSERT_TRUE(receive());
    EXPECT_GT(lists_, lists_before);
    EXPECT_FALSE(reader_.mid_frame());
    EXPECT_EQ(reader_.arrived() - before, works.size());
    EXPECT_EQ(arrived_, immediates);
    EXPECT_TRUE(std::ranges::all_of(works, [this](const Work& w) { return has_come(w); }));
    ASSERT_TRUE(queue_.acknowledge(reader_.arrived()));
    std::vector<Done> done(kDepth);
    EXPECT_EQ(queue_.take_sent(done), works.size());
  }
}

TEST_F(TcpLists, AreAcknowledgedWhole) {
  queue_.append(short_writes(8));
  const size_t block = 9 * kFrameHeaderBytes;
  for (const size_t bytes : {block / 2, block / 2, size_t{1000}, size_t{6500}}) {
    EXPECT_EQ(send(bytes), bytes);
    ASSERT_TRUE(receive());
    EXPECT_TRUE(reader_.mid_list());
    EXPECT_TRUE(reader_.mid_frame());
  }
  EXPECT_EQ(reader_.arrived(), 7u);
  send_all();
  EXPECT_FALSE(reader_.mid_list());
  EXPECT_EQ(reader_.arrived(), 8u);
}

TEST_F(TcpLists, OneThatTakesLongIsAcknowledgedInParts) {
  queue_.append(short_writes(8));
  EXPECT_EQ(send(9 * kFrameHeaderBytes), 9 * kFrameHeaderBytes);
  ASSERT_TRUE(receive());
  EXPECT_EQ(reader_.awaited(), 0u);
  for (const uint32_t whole : {2u, 4u, 6u}) {  // and half of another
    std::this_thread::sleep_for(std::chrono::nanoseconds(FrameReader::kSlowListNs));
    EXPECT_GT(send(whole == 2 ? 2500 : 2000), 0u);
    ASSERT_TRUE(receive());
    EXPECT_TRUE(reader_.mid_list());
    EXPECT_EQ(reader_.awaited(), whole);
  }
  send_all();
  EXPECT_EQ(reader_.awaited(), 8u);
}

// A packet is for one call: what that call has no place for is lost.
TEST_F(TcpLists, OneCallPlacesManyPayloads) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  stream_.reader = Fd(fds[0]);
  stream_.writer = Fd(fds[1]);
  const auto works = short_writes(8);
  queue_.append(works);
  Done done[8];
  size_t count = 0;
  for (const size_t bytes : {9 * kFrameHeaderBytes, size_t{8 * 1000 - 1}}) {
    EXPECT_EQ(reader_.arrived(), 0u);
    ASSERT_EQ(send(bytes), bytes);
    ASSERT_TRUE(reader_.read(stream_.reader.get(), done, &count));
  }
  EXPECT_EQ(reader_.arrived(), 7u);
  for (const Work& work : works) EXPECT_EQ(has_come(work), &work != &works.back());
  send_all();
  EXPECT_EQ(reader_.arrived(), 8u);
  EXPECT_TRUE(has_come(works.back()));
}

// In however many parts they come, unless it takes long.
TEST(TcpListsOfAChannel, HaveOneAcknowledgement) {
  constexpr uint32_t kLength = 1000;
  for (const size_t socket_buffer : {0, 16 << 10}) {  // 0: as the kernel has it
    Settings settings;
    settings.socket_buffer = socket_buffer;
    TestPair pair = connected_pair(true, settings);
    TestBuffer from(*pair.left_rail, kMostListed * kSlot), to(*pair.right_rail, from.size());
    from.fill_pattern(1);
    std::vector<Work> works;
    for (uint32_t at = 0; at < from.size(); at += kSlot) {
      works.push_back(work_of(from, at, to, at, kLength));
      works.back().opcode = Opcode::kWrite;
    }
    const uint64_t doorbells = pair.passive->counters.doorbells.get(), begin_ns = steady_now_ns();
    size_t taken = 0, sent = 0;
    ASSERT_EQ(pair.active->post(works, &taken), Status::kOk);
    ASSERT_EQ(taken, kMostListed);
    Status left = Status::kOk, right = Status::kOk;
    ASSERT_TRUE(eventually([&] {
      for (const Done& done : poll_once(*pair.active, &left))
        sent += done.kind == Done::Kind::kSent;
      EXPECT_TRUE(poll_once(*pair.passive, &right).empty());
      return sent == kMostListed || left != Status::kOk || right != Status::kOk;
    }));
    EXPECT_EQ(sent, kMostListed) << pair.active->failure().what << pair.passive->failure().what;
    const uint64_t most = 1 + (steady_now_ns() - begin_ns) / FrameReader::kSlowListNs;
    EXPECT_GE(pair.passive->counters.doorbells.get(), doorbells + 1);
    EXPECT_LE(pair.passive->counters.doorbells.get(), doorbells + most);
    for (const Work& work : works) {
      const auto* const place = reinterpret_cast<const std::byte*>(work.remote_address);
      EXPECT_TRUE(std::equal(place, place + kLength, work.local));
    }
  }
}

TEST_F(TcpLists, AWriteThatIsRefusedCostsOnlyItself) {
  for (const size_t cut : {size_t{1} << 20, size_t{300}}) {
    std::ranges::fill(to_, std::byte{0});
    auto works = short_writes(8);
    works[0].remote_key ^= 1;
    works[5].remote_key ^= 1;
    const uint64_t refused = parts_.queue.control().refused();
    queue_.append(works);
    send_all(cut);
    EXPECT_FALSE(reader_.mid_frame());
    EXPECT_EQ(parts_.queue.control().refused() - refused, 2u);
    for (size_t i = 0; i < works.size(); ++i) EXPECT_EQ(has_come(works[i]), i != 0 && i != 5);
    drop_refusals();
  }
}

// After it nothing is written, and what is behind the list arrives.
TEST_F(TcpLists, DeregisteringInTheMiddleOfOneRefusesTheRest) {
  constexpr size_t kBlock = 9 * kFrameHeaderBytes;
  // With a call of its own for the block, payloads go straight to their places.
  for (const size_t first : {kBlock, kBlock + 3500}) {
    SCOPED_TRACE(first);
    std::ranges::fill(to_, std::byte{0});
    const uint32_t before = reader_.arrived();
    const uint64_t refused = parts_.queue.control().refused();
    const auto works = short_writes(8);
    queue_.append(works);
    for (const size_t bytes : {first, kBlock + 3500 - first}) {
      ASSERT_EQ(send(bytes), bytes);
      ASSERT_TRUE(receive());
    }
    EXPECT_EQ(reader_.arrived() - before, 3u);
    ASSERT_TRUE(regions_.remove(key_));
    const std::vector<std::byte> until_now = to_;
    send_all();
    EXPECT_TRUE(to_ == until_now);
    for (size_t i = 0; i < works.size(); ++i) EXPECT_EQ(has_come(works[i]), i < 3);
    EXPECT_EQ(reader_.arrived() - before, 8u);
    EXPECT_EQ(parts_.queue.control().refused() - refused, 5u);
    key_ =
        *regions_.add({to_.data(), kBytes});  // another region, for the list of the next turn too
    const Work next = work(Opcode::kWrite, kBytes / 2, 1000);
    queue_.append({&next, 1});
    send_all();
    EXPECT_TRUE(has_come(next));
    drop_refusals();
  }
}

TEST_F(TcpLists, AMalformedListIsAFaultAndNothingIsWritten) {
  const struct {
    const char* name;
    uint32_t count, bytes;
    void (*spoil)(std::vector<FrameHeader>* headers);
  } cases[] = {
      {"none", 0, 0, [](auto*) {}},
      {"too many", kMostListed + 1, 4000, [](auto*) {}},
      {"too many bytes", 4, kMaxListBytes + 1, [](auto*) {}},
      {"fewer bytes", 4, 4001, [](auto*) {}},
      {"more bytes", 4, 3999, [](auto*) {}},
      {"an empty one", 4, 3000, [](auto* headers) { (*headers)[1].length = 0; }},
      {"an immediate", 4, 4000, [](auto* headers) { set_type(&(*headers)[3], FrameType::kWrite); }},
      {"a list", 4, 4000, [](auto* headers) { set_type(&(*headers)[2], FrameType::kList); }},
      {"no magic", 4, 4000, [](auto* headers) { (*headers)[2].magic = 1; }},
      {"a flag", 4, 4000, [](auto* headers) { (*headers)[0].flags = kNeedsNoAck; }},
  };
  for (const auto& wrong : cases) {
    SCOPED_TRACE(wrong.name);
    TestStream stream;
    TestReader parts(regions_, kMaxMessage);
    FrameHeader head;
    set_type(&head, FrameType::kList);
    head.immediate = wrong.count;
    head.length = wrong.bytes;
    std::vector<FrameHeader> headers(4);
    for (FrameHeader& header : headers) {
      set_type(&header, FrameType::kSilentWrite);
      header.length = 1000;
      header.remote_address = reinterpret_cast<uint64_t>(to_.data());
      header.remote_key = key_;
    }
    wrong.spoil(&headers);
    std::vector<std::byte> bytes;
    append_frame(&bytes, head, std::as_bytes(std::span(headers)));
    bytes.resize(bytes.size() + 5000, std::byte{1});
    stream.write(bytes);
    Done done[8];
    size_t count = 0;
    EXPECT_FALSE(parts.reader.read(stream.reader.get(), done, &count));
    EXPECT_EQ(parts.reader.fault().kind, ReadFault::Kind::kNotAFrame);
    EXPECT_TRUE(std::ranges::all_of(to_, [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

}  // namespace
}  // namespace slime::tcp
