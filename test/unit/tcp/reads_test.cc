// How tcp answers reads: by turns, and from memory that may go at any time. The contract suite has
// what all rails promise of reads.
#include <sys/uio.h>

#include <algorithm>

#include "test/unit/tcp/support.h"
#include "transports/tcp/frames/answers.h"

namespace slime::tcp {
namespace {

Work read_of(TestBuffer& to, TestBuffer& from, uint32_t bytes, uint64_t cookie) {
  Work work = work_of(to, 0, from, 0, bytes, 0, cookie);
  work.opcode = Opcode::kRead;
  return work;
}

// A long read gives the rail back after each piece.
TEST(TcpReads, ALongReadDelaysNeitherReadsNorWrites) {
  constexpr uint32_t kLong = 64 << 20;
  const TestPair pair = connected_pair();
  TestBuffer remote(*pair.right_rail, kLong, 1, kRemoteRead), local(*pair.left_rail, kLong, 0, 0);
  TestBuffer small(*pair.left_rail, 64, 0, kRemoteWrite), source(*pair.right_rail, 64, 0, 0);
  ASSERT_EQ(post_one(*pair.active, read_of(local, remote, kLong, 1)), 1u);
  bool posted = false, small_read = false, arrived = false, long_read = false;
  ASSERT_TRUE(eventually([&] {
    Status status = Status::kOk;
    (void)poll_once(*pair.passive, &status);
    for (const Done& done : poll_once(*pair.active, &status)) {
      arrived |= done.kind == Done::Kind::kArrived;
      small_read |= done.kind == Done::Kind::kSent && done.cookie == 2;
      long_read |= done.kind == Done::Kind::kSent && done.cookie == 1;
    }
    if (!posted && local.data()[0] == std::byte{1}) {  // the long one has begun
      posted = true;
      EXPECT_EQ(post_one(*pair.active, read_of(small, remote, 64, 2)), 1u);
      EXPECT_EQ(post_one(*pair.passive, work_of(source, 0, small, 0, 64)), 1u);
    }
    return (small_read && arrived) || long_read;
  }));
  EXPECT_TRUE(small_read && arrived && !long_read);
  ASSERT_TRUE(eventually([&] {
    Status status = Status::kOk;
    (void)poll_once(*pair.passive, &status);
    return !poll_once(*pair.active, &status).empty();
  }));
  EXPECT_TRUE(local.bytes() == remote.bytes());
}

// It could try keys until one is right.
TEST(TcpReads, APeerThatIsRefusedAgainAndAgainLosesItsConnection) {
  for (const Opcode opcode : {Opcode::kRead, Opcode::kWrite}) {
    const TestPair pair = connected_pair();
    TestBuffer remote(*pair.right_rail, 64, 1, 0), local(*pair.left_rail, 64, 0, 0);
    Work work = read_of(local, remote, 64, 1);
    work.opcode = opcode;
    size_t taken = 0, refused = 0;
    Status status = Status::kOk, there = Status::kOk;
    ASSERT_TRUE(eventually([&] {
      (void)pair.active->post({&work, 1}, &taken);
      refused += poll_once(*pair.active, &status).size();
      (void)poll_once(*pair.passive, &there);
      return status != Status::kOk && there != Status::kOk;
    }));
    EXPECT_GE(refused, ControlFrames::kRefusalsAtOnce / 2);
    EXPECT_NE(pair.passive->failure().what.find("too many in too short a time"), std::string::npos)
        << pair.passive->failure().what;
    EXPECT_GE(pair.passive->counters.refused.get(), ControlFrames::kRefusalsAtOnce);
  }
}

// The answers to reads of `bytes` each, whose stream the kernel takes in two pieces.
struct CutAnswer {
  CutAnswer(uint32_t bytes, size_t cut, uint32_t reads = 1) {
    for (uint32_t i = 0; i < reads; ++i) {
      memory.emplace_back(bytes, std::byte{0x77});
      MemoryRange range{memory[i].data(), bytes};
      range.rights = kRemoteRead;
      keys.push_back(*regions.add(range));
      FrameHeader request;
      request.immediate = i;
      request.remote_key = keys[i];
      request.remote_address = reinterpret_cast<uint64_t>(memory[i].data());
      request.length = bytes;
      EXPECT_TRUE(answers.take(request));
    }
    send(cut);
  }
  // The kernel has room for so many bytes.
  void send(size_t room) {
    size_t asked = 0;
    const auto take = [&](std::span<const iovec> vectors) {
      const size_t before = stream.size();
      for (const iovec& vector : vectors) {
        const auto* const from = static_cast<const std::byte*>(vector.iov_base);
        const size_t bytes = std::min(vector.iov_len, room - (stream.size() - before));
        stream.insert(stream.end(), from, from + bytes);
      }
      return static_cast<ssize_t>(stream.size() - before);
    };
    (void)answers.send(take, arrived, control, &asked);
    ++calls;
  }
  void finish() {
    while (!answers.empty()) {
      if (!answers.mid_frame()) take_refusals();
      send(SIZE_MAX);
    }
    take_refusals();
  }
  void take_refusals() {
    if (control.empty()) return;
    const auto refusals = control.bytes(0);
    stream.insert(stream.end(), refusals.begin(), refusals.end());
    (void)control.moved(refusals.size());
  }

  std::vector<std::vector<std::byte>> memory;
  RegionTable regions;
  std::vector<uint64_t> keys;
  Answers answers{regions, kMaxReads};
  ControlFrames control{4, kMaxReads};
  std::vector<std::byte> stream;
  size_t calls = 0;
  uint32_t arrived = 0;
};

// The ends of reads that get this stream, in two pieces, and their bytes.
std::vector<Done::Kind> read_answers(std::span<const std::byte> stream, size_t cut,
                                     std::vector<std::vector<std::byte>>* to) {
  RegionTable regions;
  TestReader reader(regions, to->front().size());
  for (std::vector<std::byte>& one : *to) {
    Work work;
    work.opcode = Opcode::kRead;
    work.local = one.data();
    work.local_key = *regions.add({one.data(), one.size()});
    work.length = static_cast<uint32_t>(one.size());
    work.cookie = static_cast<uint64_t>(&one - to->data());
    reader.queue.control().push(reader.reads.begin(work));
  }
  (void)reader.queue.gather(0, 0, true);
  reader.queue.moved(reader.queue.gathered());
  TestStream pipe;
  std::vector<Done::Kind> ends(to->size(), Done::Kind::kArrived);
  size_t ended = 0;
  for (const auto piece : {stream.first(cut), stream.subspan(cut)}) {
    if (!piece.empty()) pipe.write(piece);
    Done done[8];
    size_t count = 0;
    EXPECT_TRUE(reader.reader.read(pipe.reader.get(), done, &count));
    for (size_t i = 0; i < count; ++i) ends[done[i].cookie] = done[i].kind;
    ended += count;
  }
  EXPECT_EQ(ended, to->size());
  return ends;
}

// Wherever the kernel cuts the answer, and the memory goes: what the memory holds then is not sent,
// and the reader has all bytes or is told that it has not.
TEST(TcpAnswers, MemoryThatGoesAtAnyByteIsNotLeaked) {
  constexpr uint32_t kBytes = 100;
  constexpr size_t kAll = kFrameHeaderBytes + kBytes + kFrameHeaderBytes;
  for (size_t cut = 0; cut < kAll; ++cut) {
    SCOPED_TRACE(cut);
    CutAnswer answer(kBytes, cut);
    ASSERT_TRUE(answer.regions.remove(answer.keys[0]));
    std::ranges::fill(answer.memory[0], std::byte{0x99});
    answer.finish();
    EXPECT_EQ(std::ranges::count(answer.stream, std::byte{0x99}), 0);
    std::vector<std::vector<std::byte>> got(1, std::vector<std::byte>(kBytes));
    const Done::Kind end = read_answers(answer.stream, cut, &got)[0];
    const bool all_had_gone = cut >= kFrameHeaderBytes + kBytes;
    EXPECT_EQ(end, all_had_gone ? Done::Kind::kSent : Done::Kind::kRefused);
    const size_t of_payload = cut - std::min(cut, kFrameHeaderBytes);
    EXPECT_EQ(std::ranges::count(got[0], std::byte{0x77}),
              static_cast<ptrdiff_t>(std::min<size_t>(of_payload, kBytes)));
  }
}

// The same where several leave together, and the memory of one of them goes.
TEST(TcpAnswers, SeveralThatAreCutComeWholeOrAreRefused) {
  constexpr uint32_t kBytes = 60, kReads = 3;
  constexpr size_t kOne = kFrameHeaderBytes + kBytes + kFrameHeaderBytes;
  for (size_t cut = 0; cut <= kReads * kOne; ++cut) {
    for (uint32_t gone = 0; gone < kReads; ++gone) {
      SCOPED_TRACE(cut);
      SCOPED_TRACE(gone);
      CutAnswer answer(kBytes, cut, kReads);
      ASSERT_TRUE(answer.regions.remove(answer.keys[gone]));
      std::ranges::fill(answer.memory[gone], std::byte{0x99});
      answer.finish();
      EXPECT_EQ(std::ranges::count(answer.stream, std::byte{0x99}), 0);
      std::vector<std::vector<std::byte>> got(kReads, std::vector<std::byte>(kBytes));
      const auto ends = read_answers(answer.stream, cut, &got);
      for (uint32_t i = 0; i < kReads; ++i) {
        const bool had_gone = cut >= i * kOne + kFrameHeaderBytes + kBytes;
        const bool refused = i == gone && !had_gone;
        EXPECT_EQ(ends[i], refused ? Done::Kind::kRefused : Done::Kind::kSent);
        EXPECT_TRUE(refused || std::ranges::count(got[i], std::byte{0x77}) == kBytes);
      }
    }
  }
}

TEST(TcpAnswers, ShortOnesLeaveTogether) {
  constexpr uint32_t kReads = Answers::kTogether;
  for (const uint32_t bytes : {1u, 4096u}) {
    CutAnswer answer(bytes, SIZE_MAX, kReads);
    answer.finish();
    EXPECT_EQ(answer.calls, 1u);
    EXPECT_EQ(answer.stream.size(), kReads * (bytes + 2 * kFrameHeaderBytes));
  }
  constexpr uint32_t kTurn = Answers::kSlowAnswerBytes, kLong = Answers::kTogetherBytes / kTurn;
  CutAnswer long_ones(kTurn, SIZE_MAX, kLong + 1);
  long_ones.finish();
  EXPECT_EQ(long_ones.calls, 2u);
}

// The rest of a frame that was cut leaves alone: what waits behind it may be a refusal, which must
// come before any later count of writes.
TEST(TcpAnswers, NothingOvertakesAControlFrame) {
  CutAnswer answer(60, kFrameHeaderBytes + 1, 3);
  const size_t calls = answer.calls;
  EXPECT_EQ(answer.answers.sent_ack(), 0u);
  ASSERT_TRUE(answer.control.refuse_write(5));
  answer.arrived = 7;
  answer.send(SIZE_MAX);
  EXPECT_EQ(answer.calls, calls + 1);
  EXPECT_EQ(answer.stream.size(), 60 + 2 * kFrameHeaderBytes);
  EXPECT_EQ(answer.answers.sent_ack(), 0u);
  answer.take_refusals();
  answer.send(SIZE_MAX);
  EXPECT_EQ(answer.answers.sent_ack(), 7u);
  EXPECT_TRUE(answer.answers.empty());
}

TEST(TcpAnswers, AnyCutGivesTheWholeAnswer) {
  constexpr uint32_t kSlow = Answers::kSlowAnswerBytes;
  for (const uint32_t bytes : {1u, kSlow, kSlow + 1, 2 * kSlow + 2 * kMaxAnswerBytes}) {
    for (const size_t cut : {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{33}}) {
      SCOPED_TRACE(bytes);
      CutAnswer answer(bytes, cut);
      answer.finish();
      const size_t frames = bytes <= kSlow ? 1 : bytes <= 2 * kSlow ? 2 : 4;
      EXPECT_EQ(answer.stream.size(), bytes + (frames + 1) * kFrameHeaderBytes);
      EXPECT_EQ(std::ranges::count(answer.stream, std::byte{0x77}), bytes);  // none in headers
    }
  }
}

TEST(TcpAnswers, TurnsAreShortWhereTheKernelTakesLittle) {
  CutAnswer answer(8 << 20, SIZE_MAX);  // and its first turn
  const auto turn = [&](size_t most) {
    const size_t before = answer.stream.size();
    answer.send(most);
    return answer.stream.size() - before;
  };
  EXPECT_EQ(answer.stream.size(), Answers::kSlowAnswerBytes + kFrameHeaderBytes);
  EXPECT_EQ(turn(SIZE_MAX), kMaxAnswerBytes + kFrameHeaderBytes);
  EXPECT_EQ(turn(1000), 1000u);
  EXPECT_EQ(turn(SIZE_MAX), kMaxAnswerBytes + kFrameHeaderBytes - 1000);
  EXPECT_EQ(turn(SIZE_MAX), Answers::kSlowAnswerBytes + kFrameHeaderBytes);
  EXPECT_EQ(turn(SIZE_MAX), kMaxAnswerBytes + kFrameHeaderBytes);
}

TEST(TcpAnswers, APeerMayHaveOnlySoManyReadsUnderWay) {
  RegionTable regions;
  Answers answers(regions, kMaxReads);
  FrameHeader request;
  for (uint32_t i = 0; i < kMaxReads; ++i) EXPECT_TRUE(answers.take(request));
  EXPECT_FALSE(answers.take(request));
}

// A peer whose channel is deeper asks for more reads than this end has places for.
TEST(TcpReads, OfADeeperPeerFailTheChannelAndNothingElse) {
  const auto left = loopback_rail(), right = loopback_rail();
  auto active = std::move(*left->open_channel({.active = true}));
  auto passive = std::move(*right->open_channel({.depth = 1}));
  ASSERT_TRUE(eventually([&] {
    const Status one = active->connect(passive->address());
    return passive->connect(active->address()) == Status::kOk && one == Status::kOk;
  }));
  TestBuffer to(*left, 4096), from(*right, 4096);
  std::vector<Work> works(kMaxReads, work_of(to, 0, from, 0, 64));
  for (Work& work : works) {
    work.opcode = Opcode::kRead;
    work.remote_key ^= 0x55;
  }
  size_t taken = 0;
  ASSERT_EQ(active->post(works, &taken), Status::kOk);
  EXPECT_EQ(taken, kMaxReads);
  Status status = Status::kOk;
  EXPECT_TRUE(eventually([&] { return poll_once(*passive, &status), status != Status::kOk; }));
  EXPECT_NE(passive->failure().what.find("reads"), std::string::npos) << passive->failure().what;
}

}  // namespace
}  // namespace slime::tcp
