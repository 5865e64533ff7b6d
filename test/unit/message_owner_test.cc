// What the two ends of a link for messages agree on.
#include "message/message_owner.h"

#include <gtest/gtest.h>

namespace slime {
namespace {

TEST(MessageOwner, TheSmallerLimitHoldsAtBothEnds) {
  const MessageOwner sender(4096), receiver(256);
  const auto answer = receiver.answer(sender.offer());
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(MessageWords::unpack(*answer).eager_max, 256u);
  EXPECT_TRUE(sender.accepts(*answer));
  const auto other = sender.answer(receiver.offer());
  ASSERT_TRUE(other);
  EXPECT_EQ(MessageWords::unpack(*other).eager_max, 256u);
}

TEST(MessageOwner, WhatOneEndWritesIntoIsWhatTheOtherReads) {
  const OwnerWords words = MessageWords{.eager_max = 4096}.pack();
  const MessageOwner owner(4096);
  const LinkMemoryBytes active = owner.memory_bytes(words, true, 3);
  const LinkMemoryBytes passive = owner.memory_bytes(words, false, 3);
  EXPECT_EQ(active.inbox, passive.outbox);
  EXPECT_EQ(active.outbox, passive.inbox);
}

TEST(MessageOwner, AnotherPurposeIsRefusedByBothEnds) {
  const MessageOwner owner(4096);
  const OwnerWords other = MessageWords{.purpose = 2, .eager_max = 4096}.pack();
  const auto answer = owner.answer(other);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().status, Status::kRemote);
  EXPECT_NE(answer.error().what.find("purpose 1, not 2"), std::string::npos) << answer.error().what;
  EXPECT_FALSE(owner.accepts(other));
  EXPECT_FALSE(owner.accepts(MessageWords{.eager_max = 4097}.pack())) << "more than was offered";
}

}  // namespace
}  // namespace slime
