// The rows of the slot machine's table, one by one. That they are right together is the model
// checker's affair (test/model).
#include <gtest/gtest.h>

#include "switch/protocol/slot_machine.h"

namespace slime::sap {
namespace {

constexpr Role kRoot{.all = 0b11, .root = true};
constexpr Role kInner{.all = 0b11, .root = false};

void expect(const Verdict& verdict, Event event, Send send) {
  EXPECT_EQ(verdict.event, event);
  EXPECT_EQ(verdict.send, send);
}

// What lay in the half before, perhaps another job's, must not be added to; and workers that come
// from another generation are anywhere on the circle.
TEST(SlotMachine, WhoeverComesFirstOpensAFreshHalf) {
  for (uint32_t epoch : {0u, kFirstEpoch, kFirstEpoch + 1, 0x7fffffffu, 0x80000001u, 0xffffffffu}) {
    Half half;
    EXPECT_EQ(on_query(half, epoch, kRoot), Send::kStatus) << epoch;
    expect(on_contribution(half, epoch, 0, kRoot), Event::kOpened, Send::kNothing);
    EXPECT_EQ(half.epoch, epoch);
  }
}

TEST(SlotMachine, ARoundAtTheRoot) {
  Half half;
  expect(on_contribution(half, 1, 1, kRoot), Event::kOpened, Send::kNothing);
  expect(on_contribution(half, 1, 1, kRoot), Event::kDuplicate, Send::kNothing);
  expect(on_contribution(half, 1, 0, kRoot), Event::kFolded, Send::kResult);
  expect(on_contribution(half, 1, 0, kRoot), Event::kRepeated, Send::kResultAgain);
  expect(on_contribution(half, 3, 0, kRoot), Event::kOpened, Send::kNothing);
  expect(on_contribution(half, 1, 1, kRoot), Event::kStale, Send::kNothing);
  EXPECT_EQ(half.epoch, 3u);
  EXPECT_EQ(half.arrived, 0b01u);
}

TEST(SlotMachine, AloneIsCompleteAtOnce) {
  Half root, inner;
  expect(on_contribution(root, 1, 0, {.all = 1, .root = true}), Event::kOpened, Send::kResult);
  expect(on_contribution(inner, 1, 0, {.all = 1, .root = false}), Event::kOpened, Send::kPartial);
}

TEST(SlotMachine, ARoundAtAnInnerSwitch) {
  Half half;
  EXPECT_FALSE(on_parent_result(half, 1, kInner));
  expect(on_contribution(half, 1, 0, kInner), Event::kOpened, Send::kNothing);
  EXPECT_FALSE(on_parent_result(half, 1, kInner)) << "nobody can have sent it";
  expect(on_contribution(half, 1, 1, kInner), Event::kFolded, Send::kPartial);
  expect(on_contribution(half, 1, 0, kInner), Event::kRepeated, Send::kPartial);
  EXPECT_FALSE(on_parent_result(half, 3, kInner));
  EXPECT_TRUE(on_parent_result(half, 1, kInner));
  EXPECT_FALSE(on_parent_result(half, 1, kInner)) << "once";
  expect(on_contribution(half, 1, 0, kInner), Event::kRepeated, Send::kResultAgain);
}

TEST(SlotMachine, QueriesChangeNothing) {
  Half half;
  EXPECT_EQ(on_query(half, 1, kRoot), Send::kStatus);
  EXPECT_EQ(arrived_for(half, 1), 0u);
  on_contribution(half, 1, 1, kRoot);
  EXPECT_EQ(on_query(half, 1, kRoot), Send::kStatus);
  EXPECT_EQ(arrived_for(half, 1), 0b10u);
  EXPECT_EQ(arrived_for(half, 3), 0u);
  on_contribution(half, 1, 0, kRoot);
  EXPECT_EQ(on_query(half, 1, kRoot), Send::kResultAgain);
  EXPECT_EQ(on_query(half, 3, kRoot), Send::kStatus);
  EXPECT_EQ(on_query(half, 0xffffffff, kRoot), Send::kNothing);
  EXPECT_EQ(on_query(half, 1, kInner), Send::kPartial);
}

TEST(SlotMachine, EpochsGoRoundInACircle) {
  EXPECT_EQ(rounds_ahead(1, 0xffffffff), 2);
  EXPECT_EQ(rounds_ahead(0xffffffff, 1), -2);
  EXPECT_EQ(rounds_ahead<3>(0, 7), 1);
  EXPECT_EQ(rounds_ahead<3>(3, 7), -4);
  EXPECT_EQ(next_epoch(0xffffffff), 0u);
  EXPECT_EQ(next_epoch<3>(7), 0u);
  Half half{.epoch = 0xffffffff, .arrived = 0b11, .done = false};
  expect(on_contribution(half, 1, 0, kRoot), Event::kOpened, Send::kNothing);
}

TEST(SlotMachine, ChunksGoRoundTheSlots) {
  EXPECT_EQ(slot_of(0, 3), 0u);
  EXPECT_EQ(slot_of(7, 3), 1u);
}

}  // namespace
}  // namespace slime::sap
