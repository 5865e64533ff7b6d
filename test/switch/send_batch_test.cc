// Answers on their way out, and what happens when the kernel refuses some.
#include "switch/softswitch/send_batch.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "test/switch/udp_worker.h"

namespace slime::net {
namespace {

using test::Words;
using test::Worker;

class SendBatchTest : public testing::Test {
 protected:
  SendBatchTest() {
    socket_ = Fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    shape_.address = SocketAddress::parse("127.0.0.1:9").value();
  }

  Outgoing answer(uint16_t slot, uint32_t epoch, const std::vector<std::byte>& payload) {
    sap::Header header;
    header.type = sap::Type::kResult;
    header.slot = slot;
    header.epoch = epoch;
    header.lanes = static_cast<uint16_t>(payload.size() / 4);
    Outgoing outgoing;
    sap::encode(header, outgoing.header.data());
    outgoing.payload = payload;
    return outgoing;
  }
  void expect(Worker& worker, uint16_t first, uint16_t count, const Words& words) {
    for (uint16_t slot = first; slot < first + count; ++slot) {
      const auto packet = worker.receive();
      ASSERT_TRUE(packet);
      EXPECT_EQ(packet->header.slot, slot);
      EXPECT_EQ(packet->words, words);
    }
    EXPECT_EQ(recv(worker.fd(), nullptr, 0, MSG_DONTWAIT), -1);
  }

  Fd socket_;
  SwitchShape shape_;
  IoCounters counters_;
  const std::vector<std::byte> payload_{256, std::byte{1}};
  const Words words_{Words(64, 0x01010101)};
};

TEST_F(SendBatchTest, OneCallForManyPacketsToFewAddresses) {
  SendBatch batch(socket_.get(), true, counters_);
  Worker one(shape_), other(shape_);
  const SocketAddress both[] = {one.address(), other.address()};
  for (uint16_t slot = 0; slot < 40; ++slot) batch.send(answer(slot, 1, payload_), both);
  EXPECT_EQ(counters_.send_calls.get(), 0u);
  batch.flush();
  expect(one, 0, 40, words_);
  expect(other, 0, 40, words_);
  EXPECT_EQ(counters_.send_calls.get(), 1u);
  EXPECT_EQ(counters_.packets_out.get(), 80u);
  EXPECT_EQ(counters_.segmented.get(), 80u);
  EXPECT_EQ(counters_.bytes_out.get(), 80 * 288u);
}

TEST_F(SendBatchTest, LengthsAndWordsMayMix) {
  SendBatch batch(socket_.get(), true, counters_);
  Worker worker(shape_);
  const SocketAddress to[] = {worker.address()};
  std::vector<std::vector<std::byte>> payloads;
  for (uint16_t i = 0; i < 6; ++i) {
    std::vector<std::byte>& payload = payloads.emplace_back(4 * (1 + i % 3), std::byte{7});
    batch.send(answer(i, 1, payload), to);
    if (payload.size() > 4) batch.flush();  // the payload of longer ones is not copied
    std::ranges::fill(payload, std::byte{0});
  }
  batch.flush();
  std::vector<size_t> lengths;
  for (int i = 0; i < 6; ++i) {
    const auto packet = worker.receive();
    ASSERT_TRUE(packet);
    lengths.push_back(packet->words.size());
    EXPECT_EQ(packet->words, Words(packet->words.size(), 0x07070707));
  }
  EXPECT_THAT(lengths, testing::UnorderedElementsAre(1, 1, 2, 2, 3, 3));
}

TEST_F(SendBatchTest, WhatIsRefusedIsCountedAndTheRestGoesOn) {
  SendBatch batch(socket_.get(), true, counters_);
  Worker one(shape_), other(shape_);
  SocketAddress nowhere = one.address();
  nowhere.set_port(0);  // EINVAL
  const SocketAddress wrong_family = SocketAddress::parse("[::1]:9").value();
  const SocketAddress all[] = {nowhere, one.address(), wrong_family, other.address(), nowhere};
  batch.send(answer(0, 1, payload_), all);
  batch.flush();
  expect(one, 0, 1, words_);
  expect(other, 0, 1, words_);
  EXPECT_EQ(counters_.send_drops.get(), 3u);
  EXPECT_EQ(counters_.packets_out.get(), 2u);
}

// SO_NO_CHECK: the kernel cuts no packets without checksums (linux/net/ipv4/udp.c, udp_send_skb).
TEST_F(SendBatchTest, SendsSinglyWhereTheKernelCannotCut) {
  const int on = 1;
  ASSERT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
  SendBatch batch(socket_.get(), true, counters_);
  Worker worker(shape_);
  const SocketAddress to[] = {worker.address()};
  for (uint16_t slot = 0; slot < 16; ++slot) batch.send(answer(slot, 1, payload_), to);
  batch.flush();
  expect(worker, 0, 16, words_);
  EXPECT_EQ(counters_.send_calls.get(), 17u);
  EXPECT_EQ(counters_.send_drops.get(), 0u);
  for (uint16_t slot = 16; slot < 32; ++slot) batch.send(answer(slot, 1, payload_), to);
  batch.flush();  // by now it knows
  expect(worker, 16, 16, words_);
  EXPECT_EQ(counters_.send_calls.get(), 18u);
  EXPECT_EQ(counters_.segmented.get(), 0u);
}

TEST_F(SendBatchTest, MoreThanItHolds) {
  SendBatch batch(socket_.get(), false, counters_);
  Worker worker(shape_);
  const SocketAddress to[] = {worker.address()};
  for (uint16_t slot = 0; slot < 300; ++slot) batch.send(answer(slot, 1, payload_), to);
  batch.flush();
  expect(worker, 0, 300, words_);
  EXPECT_EQ(counters_.send_calls.get(), 3u);
}

TEST_F(SendBatchTest, KnowsWhichSlotsWait) {
  SendBatch batch(socket_.get(), true, counters_);
  Worker worker(shape_);
  const SocketAddress to[] = {worker.address()};
  const Outgoing waiting = answer(5, 2, payload_);
  EXPECT_FALSE(batch.holds(waiting.header));
  batch.send(waiting, to);
  EXPECT_TRUE(batch.holds(answer(5, 4, payload_).header));
  EXPECT_FALSE(batch.holds(answer(5, 3, payload_).header));  // the other half
  EXPECT_FALSE(batch.holds(answer(6, 2, payload_).header));
  EXPECT_FALSE(batch.holds(std::span(waiting.header).first(sap::kHeaderBytes - 1)));
  batch.flush();
  EXPECT_FALSE(batch.holds(waiting.header));
}

}  // namespace
}  // namespace slime::net
