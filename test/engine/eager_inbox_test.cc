// Eager messages at the receiver, by themselves: what is taken in, found, and given back as
// credits.
#include "message/receiver/eager_inbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace slime {
namespace {

constexpr uint32_t kEagerMax = 128;
using Arrival = EagerInbox::Arrival;

class EagerInboxTest : public ::testing::Test {
 protected:
  // The sender writes message `index`, the ordinal-th of its tag, and announces it.
  Arrival arrive(uint32_t index, int32_t tag, uint32_t ordinal, uint32_t length = 8) {
    const EagerHeader header{index, length, tag, ordinal, 0, 0};
    std::byte* const start = &memory_[index % kEagerBuffers * eager_buffer_bytes(kEagerMax)];
    std::memcpy(start, &header, sizeof header);
    std::memset(start + sizeof header, static_cast<int>(index), std::min(length, kEagerMax));
    return inbox_.arrive(eager_immediate(index), sizeof header + length, &buffer_);
  }

  std::vector<std::byte> memory_ =
      std::vector<std::byte>(kEagerBuffers * eager_buffer_bytes(kEagerMax));
  EagerInbox inbox_{memory_.data(), kEagerMax};
  uint32_t buffer_ = 0;
};

TEST_F(EagerInboxTest, AMessageIsFoundByItsTagAndOrdinal) {
  EXPECT_EQ(arrive(0, 7, 3), Arrival::kNew);
  EXPECT_TRUE(inbox_.any_waiting());
  EXPECT_TRUE(inbox_.has_tag(7));
  EXPECT_FALSE(inbox_.has_tag(8));
  EXPECT_EQ(inbox_.find(7, 3), buffer_);
  EXPECT_EQ(inbox_.find(7, 4), std::nullopt);
  EXPECT_EQ(inbox_.header(buffer_).length, 8u);
  inbox_.take(buffer_);
  EXPECT_FALSE(inbox_.any_waiting());
  EXPECT_EQ(inbox_.find(7, 3), std::nullopt);
}

TEST_F(EagerInboxTest, CreditsReturnInTheOrderOfTheMessages) {
  EXPECT_EQ(arrive(1, 0, 1), Arrival::kNew);
  inbox_.take(buffer_);
  EXPECT_EQ(inbox_.consumed(), 0u) << "the one before it has not come";
  EXPECT_EQ(arrive(0, 0, 0), Arrival::kNew);
  inbox_.take(buffer_);
  EXPECT_EQ(inbox_.consumed(), 2u);
}

TEST_F(EagerInboxTest, TheCopyCountsWhateverThePeerWritesLater) {
  EXPECT_EQ(arrive(0, 0, 0), Arrival::kNew);
  const EagerHeader damaged{0, kEagerMax + 1, 9, 9, 0, 0};
  std::memcpy(memory_.data(), &damaged, sizeof damaged);
  EXPECT_EQ(inbox_.header(buffer_).length, 8u);
  EXPECT_EQ(inbox_.header(buffer_).tag, 0);
}

TEST_F(EagerInboxTest, ARepeatedMessageIsIgnored) {
  EXPECT_EQ(arrive(0, 0, 0), Arrival::kNew);
  EXPECT_EQ(arrive(0, 0, 0), Arrival::kRepeated) << "it waits";
  inbox_.take(buffer_);
  EXPECT_EQ(arrive(0, 0, 0), Arrival::kRepeated) << "it was consumed";
}

TEST_F(EagerInboxTest, WhatDoesNotFitIsMalformed) {
  EXPECT_EQ(arrive(0, 0, 0, kEagerMax + 1), Arrival::kMalformed);
  EXPECT_EQ(arrive(kEagerBuffers, 0, 0), Arrival::kMalformed) << "more than there are credits";
  EXPECT_EQ(inbox_.arrive(eager_immediate(1), sizeof(EagerHeader), &buffer_), Arrival::kMalformed)
      << "nobody wrote it";
  const EagerHeader huge{1, 8, 0, 0, 0, 1};
  std::memcpy(&memory_[eager_buffer_bytes(kEagerMax)], &huge, sizeof huge);
  EXPECT_EQ(inbox_.arrive(eager_immediate(1), sizeof huge + 8, &buffer_), Arrival::kMalformed);
  EXPECT_FALSE(inbox_.any_waiting());
}

// So a sender reports a message that is too long for its receive.
TEST_F(EagerInboxTest, AHeaderMayComeWithoutItsPayload) {
  const EagerHeader header{0, 1 << 30, 7, 0, 0, 1};
  std::memcpy(memory_.data(), &header, sizeof header);
  EXPECT_EQ(inbox_.arrive(eager_immediate(0), sizeof header, &buffer_), Arrival::kNew);
  EXPECT_EQ(inbox_.header(buffer_).bytes(), (uint64_t{1} << 32) + (uint64_t{1} << 30));
  EXPECT_FALSE(inbox_.has_payload(buffer_));
  EXPECT_EQ(arrive(1, 7, 1), Arrival::kNew);
  EXPECT_TRUE(inbox_.has_payload(buffer_));
}

TEST_F(EagerInboxTest, AReportIsDueWhenHalfOfTheBuffersAreOwed) {
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < kEagerBuffers / 2; ++i) {
      EXPECT_FALSE(inbox_.report_due());
      const uint32_t index = round * (kEagerBuffers / 2) + i;
      EXPECT_EQ(arrive(index, 0, index), Arrival::kNew);
      inbox_.take(buffer_);
    }
    EXPECT_TRUE(inbox_.report_due());
    inbox_.reported();
  }
}

}  // namespace
}  // namespace slime
