// The traffic class of a communicator on the sockets of its links.
#include "message/send_comm.h"
#include "test/support/own_sockets.h"
#include "test/support/tcp_link.h"

namespace slime::test {
namespace {

constexpr int kSender = 0x50, kReceiver = 0x70, kUser = 0x90;

void drive_until(TcpLink& link, size_t rails_up) {
  const Link& sender = static_cast<SendCommImpl&>(*link.sender).link();
  ASSERT_TRUE(in_time([&] {
    EXPECT_EQ(link.sender->progress(), Status::kOk) << link.sender->failure().what;
    EXPECT_EQ(link.receiver->progress(), Status::kOk) << link.receiver->failure().what;
    return sender.rails().up_count() == rails_up || ::testing::Test::HasFailure();
  }));
}

// All connections that the process has are the link's rails by then.
TEST(TrafficClass, MarksBothEndsAndRailsThatReturn) {
  Settings settings;
  settings.rails_per_if = 2;
  settings.rail_retry = 0.01;
  TcpHost from(settings), to(settings);
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to, {kSender}, {kReceiver}));
  EXPECT_EQ(count_marked(kSender), 2u);
  EXPECT_EQ(count_marked(kReceiver), 2u);
  to.rails[1]->dead = true;
  ASSERT_NO_FATAL_FAILURE(drive_until(link, 1));
  to.rails[1]->dead = false;
  ASSERT_NO_FATAL_FAILURE(drive_until(link, 2));
  EXPECT_TRUE(in_time([&] {
    EXPECT_EQ(link.sender->progress(), Status::kOk);
    EXPECT_EQ(link.receiver->progress(), Status::kOk);
    return count_marked(kSender) + count_marked(kReceiver) == own_sockets().size();
  })) << "a rail that has returned sends unmarked packets";
}

TEST(TrafficClass, TheSettingComesFirst) {
  Settings settings;
  settings.traffic_class = kUser;
  TcpHost from(settings), to(settings);
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to, {kSender}));
  EXPECT_EQ(count_marked(kUser), 2u);
  EXPECT_EQ(count_marked(kSender), 0u);
}

TEST(TrafficClass, NothingIsMarkedUnasked) {
  TcpHost from({}), to({});
  TcpLink link;
  ASSERT_NO_FATAL_FAILURE(link.connect(from, to));
  EXPECT_EQ(count_marked(0), own_sockets().size());
}

}  // namespace
}  // namespace slime::test
