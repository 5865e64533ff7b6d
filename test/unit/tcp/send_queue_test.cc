// The sending half of a tcp channel: partial sends, acknowledgements, completions.
#include <random>

#include "test/unit/tcp/support.h"
#include "transports/tcp/frames/send_queue.h"
#include "transports/tcp/pacer.h"

namespace slime::tcp {
namespace {

constexpr uint32_t kDepth = 8;

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

// Stands in for the kernel: takes the first `most` bytes of what is gathered.
size_t send(SendQueue& queue, std::vector<std::byte>* stream, uint32_t arrived = 0,
            size_t most = SIZE_MAX) {
  size_t taken = 0;
  for (const iovec& vector : queue.gather(arrived, arrived, true)) {
    const size_t bytes = std::min(vector.iov_len, most - taken);
    const auto* from = static_cast<const std::byte*>(vector.iov_base);
    stream->insert(stream->end(), from, from + bytes);
    taken += bytes;
  }
  queue.moved(taken);
  return taken;
}

class SendQueueTest : public testing::Test {
 protected:
  static size_t sent(SendQueue& queue) {
    Done done[kDepth];
    return queue.take_sent(done);
  }

  std::vector<std::byte> stream_;
  std::vector<std::byte> data_ = std::vector<std::byte>(100'000, std::byte{5});
};

TEST_F(SendQueueTest, CompletesInOrderWhenTheKernelHasAll) {
  SendQueue queue(kDepth, false, kMaxReads);
  EXPECT_EQ(queue.room(), kDepth);
  std::vector<Work> works;
  for (uint32_t i = 0; i < kDepth; ++i) works.push_back(plain_work({}, i, 100 + i));
  queue.append(works);
  EXPECT_EQ(queue.room(), 0u);
  EXPECT_EQ(sent(queue), 0u);
  send(queue, &stream_);
  Done done[3];
  ASSERT_EQ(queue.take_sent(done), 3u);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].cookie, 100 + i);
  EXPECT_EQ(queue.room(), 3u);
  EXPECT_EQ(sent(queue), kDepth - 3);
  EXPECT_EQ(queue.room(), kDepth);
  EXPECT_EQ(parse(stream_).size(), kDepth);
}

TEST_F(SendQueueTest, WhatTheKernelLeavesKeepsItsPlace) {
  SendQueue queue(kDepth, false, kMaxReads);
  std::vector<Work> works;
  for (uint32_t i = 0; i < 4; ++i) works.push_back(plain_work(data_, i, i));
  queue.append(works);
  EXPECT_EQ(send(queue, &stream_, 0, 0), 0u);
  EXPECT_TRUE(queue.blocked());
  std::mt19937 random(1);
  size_t done = 0;
  while (queue.wants_to_send(0)) {
    send(queue, &stream_, 0, random() % 3000);
    done += sent(queue);
    EXPECT_EQ(done, stream_.size() / (kFrameHeaderBytes + data_.size()));
  }
  EXPECT_FALSE(queue.blocked());
  const auto headers = parse(stream_);
  ASSERT_EQ(headers.size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(headers[i].immediate, i);
}

TEST_F(SendQueueTest, OneCallIsBounded) {
  SendQueue queue(1024, false, kMaxReads);
  std::vector<std::byte> large(1 << 20);
  const std::vector<Work> works(1000, plain_work(large, 0, 0));
  queue.append(works);
  size_t bytes = 0;
  for (const iovec& vector : queue.gather(0, 0, true)) bytes += vector.iov_len;
  EXPECT_LE(bytes, size_t{4} << 20);
  queue.moved(bytes);
  EXPECT_FALSE(queue.blocked());
  EXPECT_TRUE(queue.wants_to_send(0));

  SendQueue tiny(1024, false, kMaxReads);
  const std::vector<Work> many(1000, plain_work(std::span(large).first(1), 0, 0));
  tiny.append(many);
  EXPECT_LE(tiny.gather(0, 0, true).size(), 1024u) << "IOV_MAX";
}

TEST_F(SendQueueTest, ConfirmedWorksWaitForThePeer) {
  SendQueue queue(kDepth, true, kMaxReads);
  const std::vector<Work> works(5, plain_work({}, 0, 0));
  queue.append(works);
  send(queue, &stream_);
  EXPECT_EQ(sent(queue), 0u);
  EXPECT_EQ(queue.outstanding(), 5u);
  EXPECT_TRUE(queue.acknowledge(2));
  EXPECT_TRUE(queue.acknowledge(2)) << "nothing new is no error";
  EXPECT_EQ(sent(queue), 2u);
  EXPECT_TRUE(queue.acknowledge(5));
  EXPECT_EQ(sent(queue), 3u);
  EXPECT_EQ(queue.outstanding(), 0u);
}

// They are done as soon as the kernel has them, but in their order.
TEST_F(SendQueueTest, UnconfirmedWorksDoNotWaitForThePeer) {
  SendQueue queue(kDepth, true, kMaxReads);
  std::vector<Work> works(5, plain_work({}, 0, 0));
  works[0].unconfirmed = works[1].unconfirmed = works[3].unconfirmed = true;
  queue.append(works);
  EXPECT_EQ(sent(queue), 0u);
  send(queue, &stream_);
  EXPECT_EQ(sent(queue), 2u);
  EXPECT_TRUE(queue.acknowledge(2));
  EXPECT_EQ(sent(queue), 0u);
  EXPECT_TRUE(queue.acknowledge(3));
  EXPECT_EQ(sent(queue), 2u);
  EXPECT_TRUE(queue.acknowledge(5));
  EXPECT_EQ(sent(queue), 1u);
  const auto headers = parse(stream_);
  ASSERT_EQ(headers.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(headers[i].flags != 0, works[i].unconfirmed) << i;
}

TEST_F(SendQueueTest, ArrivalsThatNeedNoAcknowledgementGetOneOnlyOnAWork) {
  SendQueue queue(kDepth, false, kMaxReads);
  EXPECT_FALSE(queue.wants_to_send(0)) << "five have arrived, and none of them wants one";
  const Work work = plain_work({}, 0, 0);
  queue.append({&work, 1});
  queue.moved(queue.gather(5, 0, true).front().iov_len);
  EXPECT_FALSE(queue.wants_to_send(4)) << "the work has said so already";
  EXPECT_TRUE(queue.wants_to_send(6));
}

TEST_F(SendQueueTest, RefusesAcknowledgementsOfWhatWasNotSent) {
  SendQueue queue(kDepth, true, kMaxReads);
  EXPECT_FALSE(queue.acknowledge(1));
  const std::vector<Work> works(3, plain_work({}, 0, 0));
  queue.append(works);
  EXPECT_FALSE(queue.acknowledge(1)) << "posted, but still here";
  send(queue, &stream_);
  EXPECT_TRUE(queue.acknowledge(2));
  EXPECT_FALSE(queue.acknowledge(1)) << "a count that goes back";
  EXPECT_FALSE(queue.acknowledge(4));
  EXPECT_TRUE(queue.acknowledge(3));
}

TEST_F(SendQueueTest, AnAcknowledgementRidesOnAWorkOrGoesAlone) {
  SendQueue queue(kDepth, false, kMaxReads);
  EXPECT_FALSE(queue.wants_to_send(0));
  EXPECT_TRUE(queue.wants_to_send(7));
  send(queue, &stream_, 7);
  auto headers = parse(stream_);
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_EQ(headers[0].type, static_cast<uint8_t>(FrameType::kAck));
  EXPECT_EQ(headers[0].ack, 7u);
  EXPECT_FALSE(queue.wants_to_send(7));

  const std::vector<Work> works(2, plain_work({}, 0, 0));
  queue.append(works);
  stream_.clear();
  send(queue, &stream_, 9);
  headers = parse(stream_);
  ASSERT_EQ(headers.size(), 2u) << "no frame of its own";
  EXPECT_EQ(headers[1].ack, 9u);
  EXPECT_FALSE(queue.wants_to_send(9));
}

// An acknowledgement of its own may not slip in where the bounds of a call cut the works off.
TEST_F(SendQueueTest, AnAcknowledgementWaitsForTheWorksThatDoNotFit) {
  SendQueue queue(kDepth, false, kMaxReads);
  const std::vector<std::byte> large(5 << 20);
  const std::vector<Work> works(2, plain_work(large, 0, 0));
  queue.append(works);
  send(queue, &stream_, 1, 100);
  while (queue.wants_to_send(2)) send(queue, &stream_, 2);
  const auto headers = parse(stream_);
  ASSERT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers[0].ack, 1u);
  EXPECT_EQ(headers[1].ack, 2u);
}

// The peer takes a write for done that is acknowledged before it hears of the refusal.
TEST_F(SendQueueTest, NoFrameAcknowledgesAWriteBeforeItsRefusal) {
  for (size_t most : {SIZE_MAX, size_t{1}, size_t{33}}) {
    SendQueue queue(kDepth, true, kMaxReads);
    stream_.clear();
    EXPECT_TRUE(queue.control().refuse_write(3));
    send(queue, &stream_, 3, most == SIZE_MAX ? 0 : most);
    EXPECT_TRUE(queue.control().refuse_write(5));
    EXPECT_TRUE(queue.control().refuse_write(6));
    while (queue.wants_to_send(7)) send(queue, &stream_, 7, most);
    uint32_t last = 0, refused = 0;
    for (const FrameHeader& header : parse(stream_)) {
      if (header.type == static_cast<uint8_t>(FrameType::kRefused)) {
        EXPECT_LT(last, header.immediate);
        ++refused;
      }
      EXPECT_GE(header.ack, last) << "a count that goes back";
      last = header.ack;
    }
    EXPECT_EQ(last, 7u);
    EXPECT_EQ(refused, 3u);
  }
}

// They have no place that our own requests need.
TEST_F(SendQueueTest, OnlySoManyRefusalsOfWritesMayWait) {
  SendQueue queue(kDepth, true, kMaxReads);
  for (uint32_t i = 1; i <= kDepth; ++i) EXPECT_TRUE(queue.control().refuse_write(i));
  EXPECT_FALSE(queue.control().refuse_write(kDepth + 1));
  for (uint32_t i = 0; i < 2 * kMaxReads; ++i) queue.control().push({});
  send(queue, &stream_, kDepth);
  EXPECT_TRUE(queue.control().refuse_write(kDepth + 1));
}

// Whatever the kernel takes and when, be it single bytes: the stream stays whole, and the peer ends
// up with the newest count.
TEST_F(SendQueueTest, NoAcknowledgementIsEverLost) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SendQueue queue(kDepth, false, kMaxReads);
    stream_.clear();
    const size_t most = 1 + random() % (seed % 2 ? 20 : 3000);
    uint32_t arrived = 0, posted = 0;
    for (int i = 0; i < 300; ++i) {
      if (random() % 4 == 0) arrived += random() % 10'000'000;  // differs in every byte
      if (random() % 16 == 0 && queue.room() > 0) {
        const size_t bytes = random() % 2 ? random() % (3 * most) : 0;
        const Work work = plain_work(std::span(data_).first(bytes), posted++, 0);
        queue.append({&work, 1});
      }
      if (queue.wants_to_send(arrived)) send(queue, &stream_, arrived, random() % most);
      sent(queue);
    }
    while (queue.wants_to_send(arrived)) send(queue, &stream_, arrived, most);
    const auto headers = parse(stream_);
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
