// The sending half of a tcp channel: partial sends, acknowledgements, completions.
#include <fcntl.h>

#include <random>

#include "test/unit/tcp_support.h"
#include "transports/tcp/pacer.h"
#include "transports/tcp/send_queue.h"

namespace slime::tcp {
namespace {

constexpr uint32_t kDepth = 8;

std::vector<std::byte> drain(const Fd& fd, size_t most = SIZE_MAX) {
  std::vector<std::byte> bytes;
  std::byte buffer[4096];
  while (bytes.size() < most) {
    const size_t wanted = std::min(sizeof(buffer), most - bytes.size());
    const ssize_t got = ::recv(fd.get(), buffer, wanted, MSG_DONTWAIT);
    if (got <= 0) break;
    bytes.insert(bytes.end(), buffer, buffer + got);
  }
  return bytes;
}

std::vector<FrameHeader> parse(std::span<const std::byte> stream) {
  std::vector<FrameHeader> headers;
  while (stream.size() >= kFrameHeaderBytes) {
    FrameHeader header;
    std::memcpy(&header, stream.data(), sizeof(header));
    EXPECT_EQ(header.magic, kFrameMagic);
    EXPECT_LE(header.length, stream.size() - kFrameHeaderBytes);
    headers.push_back(header);
    stream = stream.subspan(kFrameHeaderBytes + header.length);
  }
  EXPECT_TRUE(stream.empty());
  return headers;
}

Work plain_work(std::span<const std::byte> data, uint32_t immediate, uint64_t cookie) {
  Work work;
  work.local = data.data();
  work.length = static_cast<uint32_t>(data.size());
  work.remote_address = 0x1000;
  work.remote_key = 0x2000;
  work.immediate = immediate;
  work.cookie = cookie;
  return work;
}

class SendQueueTest : public testing::Test {
 protected:
  int flush(SendQueue& queue, uint32_t arrived = 0) {
    return queue.flush(stream_.writer.get(), arrived, counters_);
  }
  // Until the kernel takes no more. Returns the bytes that lie before the queue's own.
  size_t fill_socket() {
    const int bytes = 4096;
    EXPECT_EQ(::setsockopt(stream_.writer.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    std::byte filler[512] = {};
    size_t filled = 0;
    ssize_t took;
    while ((took = ::send(stream_.writer.get(), filler, sizeof(filler), MSG_DONTWAIT)) > 0) {
      filled += static_cast<size_t>(took);
    }
    return filled;
  }
  static size_t sent(SendQueue& queue) {
    Done done[kDepth];
    return queue.take_sent(done);
  }

  TestStream stream_;
  RailCounters counters_;
  std::vector<std::byte> data_ = std::vector<std::byte>(100'000, std::byte{5});
};

TEST_F(SendQueueTest, CompletesInOrderWhenTheKernelHasAll) {
  SendQueue queue(kDepth, false);
  EXPECT_EQ(queue.room(), kDepth);
  std::vector<Work> works;
  for (uint32_t i = 0; i < kDepth; ++i) works.push_back(plain_work({}, i, 100 + i));
  queue.append(works);
  EXPECT_EQ(queue.room(), 0u);
  EXPECT_EQ(sent(queue), 0u);
  ASSERT_EQ(flush(queue), 0);
  EXPECT_EQ(counters_.doorbells.get(), 1u);
  Done done[3];
  ASSERT_EQ(queue.take_sent(done), 3u);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].cookie, 100 + i);
  EXPECT_EQ(queue.room(), 3u);
  EXPECT_EQ(sent(queue), kDepth - 3);
  EXPECT_EQ(queue.room(), kDepth);
  EXPECT_EQ(parse(drain(stream_.reader)).size(), kDepth);
}

TEST_F(SendQueueTest, AFullSocketKeepsTheFrameInItsPlace) {
  SendQueue queue(kDepth, false);
  const size_t filled = fill_socket();
  std::vector<Work> works;
  for (uint32_t i = 0; i < 4; ++i) works.push_back(plain_work(data_, i, i));
  queue.append(works);
  ASSERT_EQ(flush(queue), 0);
  EXPECT_TRUE(queue.blocked());
  EXPECT_EQ(counters_.futile_posts.get(), 1u);
  std::vector<std::byte> stream;
  std::mt19937 random(1);
  size_t done = 0;
  ASSERT_TRUE(eventually([&] {
    const auto bytes = drain(stream_.reader, 1 + random() % 3000);
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(flush(queue), 0);
    done += sent(queue);
    return done == 4 && bytes.empty();
  }));
  EXPECT_FALSE(queue.blocked());
  const auto headers = parse(std::span(stream).subspan(filled));
  ASSERT_EQ(headers.size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(headers[i].immediate, i);
}

TEST_F(SendQueueTest, ConfirmedWorksWaitForThePeer) {
  SendQueue queue(kDepth, true);
  const std::vector<Work> works(5, plain_work({}, 0, 0));
  queue.append(works);
  ASSERT_EQ(flush(queue), 0);
  EXPECT_EQ(sent(queue), 0u);
  EXPECT_EQ(queue.outstanding(), 5u);
  EXPECT_TRUE(queue.acknowledge(2));
  EXPECT_TRUE(queue.acknowledge(2)) << "nothing new is no error";
  EXPECT_EQ(sent(queue), 2u);
  EXPECT_TRUE(queue.acknowledge(5));
  EXPECT_EQ(sent(queue), 3u);
  EXPECT_EQ(queue.outstanding(), 0u);
}

TEST_F(SendQueueTest, RefusesAcknowledgementsOfWhatWasNotSent) {
  SendQueue queue(kDepth, true);
  EXPECT_FALSE(queue.acknowledge(1));
  const std::vector<Work> works(3, plain_work({}, 0, 0));
  queue.append(works);
  EXPECT_FALSE(queue.acknowledge(1)) << "posted, but still here";
  ASSERT_EQ(flush(queue), 0);
  EXPECT_TRUE(queue.acknowledge(2));
  EXPECT_FALSE(queue.acknowledge(1)) << "a count that goes back";
  EXPECT_FALSE(queue.acknowledge(4));
  EXPECT_TRUE(queue.acknowledge(3));
}

TEST_F(SendQueueTest, AnAcknowledgementRidesOnAWorkOrGoesAlone) {
  SendQueue queue(kDepth, false);
  EXPECT_FALSE(queue.wants_to_send(7)) << "this peer did not ask";
  queue.answer_with_acks();
  EXPECT_FALSE(queue.wants_to_send(0));
  EXPECT_TRUE(queue.wants_to_send(7));
  ASSERT_EQ(flush(queue, 7), 0);
  auto headers = parse(drain(stream_.reader));
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_EQ(headers[0].type, static_cast<uint8_t>(FrameType::kAck));
  EXPECT_EQ(headers[0].ack, 7u);
  EXPECT_FALSE(queue.wants_to_send(7));

  const std::vector<Work> works(2, plain_work({}, 0, 0));
  queue.append(works);
  ASSERT_EQ(flush(queue, 9), 0);
  headers = parse(drain(stream_.reader));
  ASSERT_EQ(headers.size(), 2u) << "no frame of its own";
  EXPECT_EQ(headers[1].ack, 9u);
  EXPECT_FALSE(queue.wants_to_send(9));
  EXPECT_EQ(counters_.doorbells.get(), 2u);
}

// Whatever the kernel takes and when, the peer ends up with the newest count.
TEST_F(SendQueueTest, NoAcknowledgementIsEverLost) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    stream_ = TestStream();
    SendQueue queue(kDepth, false);
    queue.answer_with_acks();
    const size_t filled = fill_socket();
    std::vector<std::byte> stream;
    uint32_t arrived = 0, posted = 0;
    const auto step = [&](size_t most) {
      const auto bytes = drain(stream_.reader, most);
      stream.insert(stream.end(), bytes.begin(), bytes.end());
      ASSERT_EQ(flush(queue, arrived), 0);
      sent(queue);
    };
    for (int i = 0; i < 200; ++i) {
      arrived += random() % 2;
      if (random() % 4 == 0 && queue.room() > 0) {
        const Work work =
            plain_work(std::span(data_).first(random() % 2 ? random() % 9000 : 0), posted++, 0);
        queue.append({&work, 1});
      }
      step(random() % 2000);
    }
    ASSERT_TRUE(eventually([&] {
      step(SIZE_MAX);
      return !queue.wants_to_send(arrived);
    }));
    step(SIZE_MAX);
    const auto headers = parse(std::span(stream).subspan(filled));
    ASSERT_FALSE(headers.empty());
    EXPECT_EQ(headers.back().ack, arrived);
    uint32_t works = 0, newest = 0;
    for (const FrameHeader& header : headers) {
      ASSERT_GE(header.ack, newest);
      newest = header.ack;
      if (header.type == static_cast<uint8_t>(FrameType::kWrite)) {
        ASSERT_EQ(header.immediate, works++);
      }
    }
    EXPECT_EQ(works, posted);
  }
}

TEST_F(SendQueueTest, TheLastAcknowledgementGoesWithoutTheWorks) {
  SendQueue queue(kDepth, false);
  queue.answer_with_acks();
  const Work work = plain_work(data_, 0, 0);
  queue.append({&work, 1});
  queue.flush_ack(stream_.writer.get(), 3, counters_);
  const auto headers = parse(drain(stream_.reader));
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_EQ(headers[0].type, static_cast<uint8_t>(FrameType::kAck));
  EXPECT_EQ(headers[0].ack, 3u);
}

TEST_F(SendQueueTest, AClosedSocketIsAnErrno) {
  SendQueue queue(kDepth, false);
  stream_.reader.reset();
  const Work work = plain_work(data_, 0, 0);
  queue.append({&work, 1});
  EXPECT_EQ(flush(queue), EPIPE);
}

TEST(TcpPacer, PausesFollowWhatAFlushMoves) {
  Pacer pacer;
  EXPECT_TRUE(pacer.due(0));
  pacer.flushed(1000, 1 << 20, true);
  EXPECT_FALSE(pacer.due(1000 + Pacer::kShortestNs - 1));
  EXPECT_TRUE(pacer.due(1000 + Pacer::kShortestNs));
  for (int i = 0; i < 20; ++i) pacer.flushed(1000, 0, true);
  EXPECT_FALSE(pacer.due(1000 + Pacer::kLongestNs - 1));
  EXPECT_TRUE(pacer.due(1000 + Pacer::kLongestNs));
  pacer.flushed(1000, 1 << 20, true);
  EXPECT_TRUE(pacer.due(1000 + Pacer::kLongestNs / 2));
  pacer.flushed(1000, 1 << 18, true);
  EXPECT_FALSE(pacer.due(1000 + Pacer::kLongestNs / 2 - 1)) << "between the limits it stays";
  pacer.flushed(0, 1 << 20, false);
  pacer.flushed(1000, 1 << 18, true);
  EXPECT_TRUE(pacer.due(1000 + Pacer::kShortestNs)) << "a socket that took all starts anew";
}

}  // namespace
}  // namespace slime::tcp
