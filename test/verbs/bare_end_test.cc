// The queue pairs that slime-perf and bench-verbs compare the engine with.
#include "tools/perf/p2p/bare_end.h"

#include "test/verbs/support.h"

namespace slime::perf::p2p {
namespace {

using verbs::TestNics;
using verbs::VerbsRail;

class BareEndTest : public testing::Test {
 protected:
  struct End {
    explicit End(Rail& rail, char fill) : memory(64, std::byte(fill)) {
      auto opened = BareEnd::open(static_cast<VerbsRail&>(rail), memory);
      EXPECT_TRUE(opened) << opened.error().what;
      verbs = std::move(*opened);
    }
    std::vector<BareEnd::Event> poll() {
      std::vector<BareEnd::Event> events(64);
      const auto count = verbs->poll(events);
      EXPECT_TRUE(count) << count.error().what;
      events.resize(*count);
      return events;
    }
    std::vector<std::byte> memory;
    std::unique_ptr<BareEnd> verbs;
  };

  BareEndTest() {
    EXPECT_TRUE(left_.verbs->connect(right_.verbs->name()));
    EXPECT_TRUE(right_.verbs->connect(left_.verbs->name()));
  }
  // So many bytes of the left memory from this offset on, as often.
  void post(ibv_wr_opcode opcode, uint64_t offset, uint32_t bytes, uint64_t number,
            size_t times = 1) {
    std::vector<ibv_send_wr> works(times);
    ibv_sge piece = left_.verbs->piece(offset, bytes);
    for (ibv_send_wr& work : works) {
      work = left_.verbs->work(opcode, &piece);
      work.imm_data = htonl(12);
    }
    ASSERT_TRUE(left_.verbs->post(works, number));
  }

  TestNics world_;
  End left_{*world_.left, 'l'}, right_{*world_.right, 'r'};
};

TEST_F(BareEndTest, WritesOfOneDoorbellEndTogether) {
  post(IBV_WR_RDMA_WRITE, 8, 16, 7, 3);
  EXPECT_EQ(left_.verbs->unfinished(), 3u);
  world_.settle();
  const auto events = left_.poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_FALSE(events[0].arrived);
  EXPECT_EQ(events[0].number, 7u);
  EXPECT_EQ(events[0].works, 3u);
  EXPECT_EQ(left_.verbs->unfinished(), 0u);
  post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 8);  // shows the bytes before it
  world_.settle();
  EXPECT_EQ(right_.memory[7], std::byte{'r'});
  EXPECT_EQ(right_.memory[8], std::byte{'l'});
  EXPECT_EQ(right_.memory[23], std::byte{'l'});
  EXPECT_EQ(right_.memory[24], std::byte{'r'});
}

TEST_F(BareEndTest, ReadsComeToTheSamePlace) {
  post(IBV_WR_RDMA_READ, 8, 16, 1);
  world_.settle();
  EXPECT_EQ(left_.poll().size(), 1u);
  EXPECT_EQ(left_.memory[7], std::byte{'l'});
  EXPECT_EQ(left_.memory[8], std::byte{'r'});
}

TEST_F(BareEndTest, MessagesComeForAsLongAsTheyAreTaken) {
  size_t arrived = 0;
  for (size_t posted = 0; posted < 2 * verbs::kReceives; posted += 32) {
    post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 1, 32);
    world_.settle();
    EXPECT_EQ(left_.poll().size(), 1u);
    for (const BareEnd::Event& event : right_.poll()) {
      EXPECT_TRUE(event.arrived);
      EXPECT_EQ(event.number, 12u);
      ++arrived;
    }
  }
  EXPECT_EQ(arrived, 2 * verbs::kReceives);
}

TEST_F(BareEndTest, WakesUpForWhatComesAfterItWasArmed) {
  ASSERT_TRUE(right_.verbs->arm());
  EXPECT_TRUE(right_.poll().empty());
  post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8, 1);
  world_.settle();
  right_.verbs->sleep(-1);  // for ever, if nothing wakes it up
  EXPECT_EQ(right_.poll().size(), 1u);
}

TEST_F(BareEndTest, AFailedWorkIsAnError) {
  world_.nics.fail_next(IBV_WC_REM_ACCESS_ERR);
  post(IBV_WR_RDMA_WRITE, 0, 8, 1);
  world_.settle();
  std::vector<BareEnd::Event> events(1);
  const auto count = left_.verbs->poll(events);
  ASSERT_FALSE(count);
  EXPECT_NE(count.error().what.find("a work of the plain loop ended: "), std::string::npos);
}

}  // namespace
}  // namespace slime::perf::p2p
