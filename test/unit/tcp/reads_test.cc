// How tcp answers reads: by turns, and from memory that may go at any time. The contract suite has
// what all rails promise of reads.
#include <sys/ioctl.h>

#include <algorithm>

#include "test/unit/tcp/support.h"
#include "transports/tcp/answers.h"

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

class TcpAnswers : public testing::Test {
 protected:
  static constexpr uint32_t kBytes = 200'000;  // one frame

  // The kernel has taken some of an answer, and of more only the beginning fits.
  void begin_answer() {
    MemoryRange range{memory_.data(), memory_.size()};
    range.rights = kRemoteRead;
    key_ = *regions_.add(range);
    FrameHeader request;
    request.remote_key = key_;
    request.remote_address = reinterpret_cast<uint64_t>(memory_.data());
    request.length = kBytes;
    ASSERT_TRUE(answers_.take(request));
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets_), 0);
    const int small = 32 << 10;
    ASSERT_EQ(::setsockopt(sockets_[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    send();
    ASSERT_TRUE(answers_.mid_frame());
  }
  void TearDown() override {
    for (const int each : sockets_) ::close(each);
  }
  void send() {
    size_t asked = 0;
    (void)answers_.send(sockets_[0], 0, control_, &asked);
  }
  void receive() {
    std::vector<std::byte> some(64 << 10);
    const ssize_t got = ::recv(sockets_[1], some.data(), some.size(), MSG_DONTWAIT);
    if (got > 0) stream_.insert(stream_.end(), some.begin(), some.begin() + got);
  }

  size_t unread() const {
    int bytes = 0;
    EXPECT_EQ(::ioctl(sockets_[1], FIONREAD, &bytes), 0);
    return static_cast<size_t>(bytes);
  }
  void finish_answer() {
    for (int i = 0; i < 1000 && !answers_.empty(); ++i) {
      receive();
      send();
    }
    EXPECT_TRUE(answers_.empty() && !answers_.mid_frame());
    receive();
  }
  // How the read ends at the reader that gets the stream; it had asked for the bytes as read 0.
  Done::Kind read_answer() {
    RegionTable regions;
    std::vector<std::byte> to(kBytes);
    TestReader reader(regions, kBytes);
    Work work;
    work.opcode = Opcode::kRead;
    work.local = to.data();
    work.local_key = *regions.add({to.data(), kBytes});
    work.length = kBytes;
    reader.queue.control().push(reader.reads.begin(work));
    (void)reader.queue.gather(0, 0, true);
    reader.queue.moved(reader.queue.gathered());
    TestStream stream;
    Done done[2];
    size_t ended = 0;
    for (size_t fed = 0; fed < stream_.size(); fed += 10'000) {
      size_t count = 0;
      stream.write(std::span(stream_).subspan(fed, std::min<size_t>(10'000, stream_.size() - fed)));
      do {
        EXPECT_TRUE(
            reader.reader.read(stream.reader.get(), std::span(done).subspan(ended), &count));
        ended += count;
      } while (!reader.reader.drained());
    }
    EXPECT_EQ(ended, 1u);
    EXPECT_EQ(done[0].kind == Done::Kind::kSent, to == memory_);
    return done[0].kind;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes, std::byte{0x77});
  RegionTable regions_;
  uint64_t key_ = 0;
  Answers answers_{regions_};
  ControlFrames control_{4};
  int sockets_[2] = {-1, -1};
  std::vector<std::byte> stream_;
};

// The frame has said how long it is. Zeros fill it; what the memory holds now is not sent. The
// reader learns that the bytes are no answer.
TEST_F(TcpAnswers, MemoryThatGoesInTheMiddleOfAFrameIsNotLeaked) {
  begin_answer();
  ASSERT_TRUE(regions_.remove(key_));
  std::ranges::fill(memory_, std::byte{0x99});
  finish_answer();
  ASSERT_EQ(stream_.size(), kFrameHeaderBytes + kBytes);
  const auto payload = std::span(stream_).subspan(kFrameHeaderBytes);
  const auto good = std::ranges::count(payload, std::byte{0x77});
  EXPECT_GT(good, 0);
  EXPECT_EQ(std::ranges::count(payload, std::byte{0}), kBytes - good);
  const auto refusal = control_.bytes(0);
  stream_.insert(stream_.end(), refusal.begin(), refusal.end());
  EXPECT_EQ(read_answer(), Done::Kind::kRefused);
}

TEST_F(TcpAnswers, MemoryThatGoesBehindTheLastByteChangesNothing) {
  begin_answer();
  while (stream_.size() + unread() < kFrameHeaderBytes + kBytes) {
    receive();
    send();
  }
  ASSERT_TRUE(regions_.remove(key_));
  finish_answer();
  EXPECT_TRUE(control_.empty());
  EXPECT_EQ(read_answer(), Done::Kind::kSent);
}

TEST_F(TcpAnswers, APeerMayHaveOnlySoManyReadsUnderWay) {
  FrameHeader request;
  for (uint32_t i = 0; i < kMaxReads; ++i) EXPECT_TRUE(answers_.take(request));
  EXPECT_FALSE(answers_.take(request));
}

}  // namespace
}  // namespace slime::tcp
