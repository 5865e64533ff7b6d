// Which works of a channel are done.
#include "transports/fabric/window.h"

#include <algorithm>
#include <random>

#include "test/fabric/support.h"

namespace slime::fabric {
namespace {

struct Posted {
  Window window;
  std::vector<void*> contexts;
  std::vector<uint32_t> immediates;

  Posted(uint32_t places, bool confirmed) : window(places, confirmed) {}
  void add(uint32_t immediate, bool unconfirmed = false,
           Opcode opcode = Opcode::kWriteWithImmediate) {
    Work work;
    work.opcode = opcode;
    work.immediate = immediate;
    work.cookie = contexts.size();
    work.unconfirmed = unconfirmed;
    contexts.push_back(window.add(work));
    immediates.push_back(immediate);
  }
  bool report(uint32_t immediate) { return window.report({&immediate, 1}); }
  std::vector<uint64_t> take(size_t room = 64) {
    std::vector<Done> done(room);
    done.resize(window.take(done));
    std::vector<uint64_t> cookies;
    for (const Done& one : done) cookies.push_back(one.cookie);
    return cookies;
  }
};

TEST(FabricWindow, WorksCompleteInAnyOrderAndPlacesComeFreeInTheirs) {
  Posted posted(4, false);
  for (uint32_t i = 0; i < 4; ++i) posted.add(i);
  EXPECT_EQ(posted.window.room(), 0u);
  EXPECT_TRUE(posted.window.complete(posted.contexts[2]));
  EXPECT_THAT(posted.take(), ElementsAre(2));
  EXPECT_EQ(posted.window.room(), 0u) << "two older ones are under way";
  EXPECT_THAT(posted.window.incomplete(), ElementsAre(0, 1, 3));
  EXPECT_TRUE(posted.window.complete(posted.contexts[1]));
  EXPECT_TRUE(posted.window.complete(posted.contexts[0]));
  EXPECT_THAT(posted.take(1), ElementsAre(1));
  EXPECT_EQ(posted.window.room(), 0u) << "the oldest has not been returned";
  EXPECT_THAT(posted.take(), ElementsAre(0));
  EXPECT_EQ(posted.window.room(), 3u);
  EXPECT_EQ(posted.window.completed(), 3u);
  EXPECT_EQ(posted.window.incomplete_count(), 1u);
}

TEST(FabricWindow, AContextThatIsNotUnderWayIsRefused) {
  Posted posted(4, false);
  int stranger = 0;
  EXPECT_FALSE(posted.window.complete(&stranger));
  EXPECT_FALSE(posted.window.complete(nullptr));
  posted.add(0);
  posted.add(1);
  EXPECT_TRUE(posted.window.complete(posted.contexts[1]));
  EXPECT_FALSE(posted.window.complete(posted.contexts[1])) << "twice";
  EXPECT_TRUE(posted.window.complete(posted.contexts[0]));
  posted.take();
  EXPECT_FALSE(posted.window.complete(posted.contexts[0])) << "its place is free";
}

TEST(FabricWindow, AWorkIsSentWhenItIsCompleteAndReported) {
  Posted posted(4, true);
  posted.add(5);
  posted.add(6);
  EXPECT_TRUE(posted.window.complete(posted.contexts[0]));
  EXPECT_THAT(posted.take(), IsEmpty());
  EXPECT_TRUE(posted.report(6)) << "before the provider's completion";
  EXPECT_THAT(posted.take(), IsEmpty());
  EXPECT_TRUE(posted.window.complete(posted.contexts[1]));
  EXPECT_THAT(posted.take(), ElementsAre(1));
  EXPECT_TRUE(posted.report(5));
  EXPECT_THAT(posted.take(), ElementsAre(0));
  EXPECT_EQ(posted.window.room(), 4u);
}

// Its place is kept all the same, for the report that comes.
TEST(FabricWindow, AnUnconfirmedWorkIsSentBeforeItIsReported) {
  Posted posted(2, true);
  posted.add(5, true);
  EXPECT_TRUE(posted.window.complete(posted.contexts[0]));
  EXPECT_THAT(posted.take(), ElementsAre(0));
  EXPECT_EQ(posted.window.room(), 1u);
  EXPECT_TRUE(posted.report(5));
  EXPECT_THAT(posted.take(), IsEmpty()) << "twice";
  EXPECT_EQ(posted.window.room(), 2u);
}

TEST(FabricWindow, OneImmediateOfSeveralWorksCountsWhenAllAreReported) {
  Posted posted(8, true);
  for (const uint32_t immediate : {7, 8, 7, 7}) posted.add(immediate);
  for (void* const context : posted.contexts) EXPECT_TRUE(posted.window.complete(context));
  EXPECT_TRUE(posted.report(7));
  EXPECT_TRUE(posted.report(7));
  EXPECT_TRUE(posted.report(8));
  EXPECT_THAT(posted.take(), ElementsAre(1));
  EXPECT_TRUE(posted.report(7));
  EXPECT_THAT(posted.take(), UnorderedElementsAre(0, 2, 3));
  EXPECT_EQ(posted.window.room(), 8u);
}

TEST(FabricWindow, AWorkThatIsPostedMeanwhileCountsToo) {
  Posted posted(8, true);
  posted.add(7);
  posted.add(7);
  for (void* const context : posted.contexts) EXPECT_TRUE(posted.window.complete(context));
  EXPECT_TRUE(posted.report(7));
  posted.add(7);
  EXPECT_TRUE(posted.report(7));
  EXPECT_THAT(posted.take(), IsEmpty()) << "one of the reports may be of the third";
  EXPECT_TRUE(posted.window.complete(posted.contexts[2]));
  EXPECT_TRUE(posted.report(7));
  EXPECT_EQ(posted.take().size(), 3u);
}

TEST(FabricWindow, AReportOfWhatWasNeverSentIsRefused) {
  Posted posted(4, true);
  EXPECT_FALSE(posted.report(1));
  posted.add(5);
  EXPECT_FALSE(posted.report(6));
  EXPECT_TRUE(posted.report(5));
  EXPECT_FALSE(posted.report(5)) << "twice";
}

TEST(FabricWindow, ASilentWriteIsDoneWhenItIsVisibleAndIsNoWorkThatAPeerReports) {
  for (const bool confirmed : {false, true}) {
    Posted posted(4, confirmed);
    for (int i = 0; i < 3; ++i) posted.add(5, false, Opcode::kWrite);
    for (const size_t index : {2, 0}) {
      EXPECT_TRUE(posted.window.complete(posted.contexts[index]));
    }
    EXPECT_EQ(posted.window.unseen(), 2u);
    EXPECT_THAT(posted.take(), IsEmpty());
    posted.window.show(1);
    EXPECT_THAT(posted.take(), ElementsAre(2)) << "in the order of their completions";
    EXPECT_EQ(posted.window.unseen(), 1u);
    posted.window.show(1);
    EXPECT_THAT(posted.take(), ElementsAre(0));
    if (confirmed) {
      EXPECT_FALSE(posted.report(5));
    }
    EXPECT_EQ(posted.window.room(), 2u);
  }
}

TEST(FabricWindow, AnImmediateIsNotThatOfASilentWrite) {
  Posted posted(4, true);
  posted.add(5, false, Opcode::kWrite);
  for (int i = 0; i < 2; ++i) posted.add(5);
  for (void* const context : posted.contexts) EXPECT_TRUE(posted.window.complete(context));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(posted.report(5));
  EXPECT_THAT(posted.take(), UnorderedElementsAre(1, 2));
  posted.window.show(1);
  EXPECT_THAT(posted.take(), ElementsAre(0));
}

TEST(FabricWindow, ARefusedWorkIsReturnedOnceAsThat) {
  Posted posted(4, true);
  posted.add(5, false, Opcode::kWrite);
  posted.add(6);
  posted.add(7, false, Opcode::kRead);
  EXPECT_TRUE(posted.window.refuse(posted.contexts[0]));
  EXPECT_FALSE(posted.window.refuse(posted.contexts[0])) << "twice";
  EXPECT_FALSE(posted.window.refuse(posted.contexts[1])) << "it has an immediate";
  EXPECT_TRUE(posted.window.refuse(posted.contexts[2]));
  EXPECT_EQ(posted.window.unseen(), 0u);
  EXPECT_EQ(posted.window.incomplete_count(), 1u);
  std::vector<Done> done(4);
  ASSERT_EQ(posted.window.take(done), 2u);
  for (const size_t i : {0, 1}) EXPECT_EQ(done[i].kind, Done::Kind::kRefused);
  EXPECT_EQ(done[0].cookie, 0u);
  EXPECT_EQ(done[1].cookie, 2u);
}

TEST(FabricWindow, APostThatFailedLeavesNothing) {
  Posted posted(2, true);
  posted.add(5);
  posted.add(6);
  posted.window.forget_newest();
  EXPECT_EQ(posted.window.room(), 1u);
  EXPECT_EQ(posted.window.incomplete_count(), 1u);
  EXPECT_FALSE(posted.window.complete(posted.contexts[1]));
  EXPECT_FALSE(posted.report(6));
}

// Whatever the order, each work is returned once, and not before both have happened.
TEST(FabricWindow, AnyOrderOfCompletionsAndReports) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    Posted posted(32, true);
    std::vector<uint32_t> events;  // twice the index of a work, and 1 for its report
    for (uint32_t i = 0; i < 32; ++i) {
      posted.add(random() % 20);
      events.insert(events.end(), {2 * i, 2 * i + 1});
    }
    std::ranges::shuffle(events, random);
    std::vector<bool> complete(32), taken(32);
    for (const uint32_t event : events) {
      const uint32_t index = event / 2;
      if (event % 2 == 0) {
        complete[index] = true;
        EXPECT_TRUE(posted.window.complete(posted.contexts[index]));
      } else {
        EXPECT_TRUE(posted.report(posted.immediates[index]));
      }
      for (const uint64_t cookie : posted.take(3)) {
        EXPECT_TRUE(complete[cookie]);
        EXPECT_FALSE(taken[cookie]);
        taken[cookie] = true;
      }
    }
    for (const uint64_t cookie : posted.take()) taken[cookie] = true;
    EXPECT_EQ(std::ranges::count(taken, true), 32);
    EXPECT_EQ(posted.window.room(), 32u);
  }
}

}  // namespace
}  // namespace slime::fabric
