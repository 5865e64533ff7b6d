// Rank 0's port and the ranks that come to it.
#include <gtest/gtest.h>
#include <poll.h>

#include <future>

#include "rendezvous/coordinator.h"
#include "rendezvous/member.h"
#include "test/support/strangers.h"

namespace slime::rendezvous {
namespace {

constexpr double kPatienceS = 60;
constexpr int kPatienceMs = 60000;

class Coordination : public testing::Test {
 protected:
  Coordination() {
    identity_.size = agreement_.size = 1;
    identity_.host = address_.host();
    identity_.port = address_.port();
  }

  Result<std::unique_ptr<Member>> join() {
    return Member::join(identity_, agreement_, kPatienceS, &pulse_, [] {});
  }
  // The next connection to the port, once it has said something.
  Fd accept() const {
    wait_for(listener_.get(), POLLIN);
    Accepted accepted;
    Error error;
    EXPECT_EQ(accept_one(listener_, &accepted, &error), Status::kOk) << error.what;
    wait_for(accepted.fd.get(), POLLIN);
    return std::move(accepted.fd);
  }
  // A connection that says hello in this way.
  Connection come(const nlohmann::json& hello) const {
    auto fd = start_connect(address_);
    EXPECT_TRUE(fd) << fd.error().what;
    wait_for(fd->get(), POLLOUT);
    Connection wire(std::move(*fd));
    wire.queue(FrameType::kHello, hello);
    EXPECT_TRUE(wire.flush() && !wire.has_output()) << wire.why();
    return wire;
  }
  // The next frame that is no heartbeat; an empty one where the connection ends.
  static Frame next(Connection* wire) {
    std::vector<Frame> frames;
    bool alive = true;
    while (frames.empty() && alive && wait_for(wire->fd(), POLLIN)) {
      alive = wire->receive(&frames);
      std::erase_if(frames, [](const Frame& f) { return f.type == FrameType::kHeartbeat; });
    }
    EXPECT_FALSE(frames.empty()) << wire->why();
    return frames.empty() ? Frame{} : frames[0];
  }
  static bool wait_for(int fd, short events) {
    pollfd waiting{fd, events, 0};
    const bool came = poll(&waiting, 1, kPatienceMs) == 1;
    EXPECT_TRUE(came);
    return came;
  }

  Fd listener_ = *listen_on(*SocketAddress::parse("127.0.0.1"));
  const SocketAddress address_ = *local_address(listener_);
  Identity identity_;
  Agreement agreement_{"token", 1, "version", "arguments"};
  Pulse pulse_;
};

TEST_F(Coordination, WelcomesARankBehindManyStrangers) {
  test::Strangers strangers;
  SLIME_NEEDS_MANY(strangers);
  identity_.listen_fd = listener_.release();
  const auto coordinator = Coordinator::start(identity_, agreement_, kPatienceS);
  ASSERT_TRUE(coordinator) << coordinator.error().what;
  strangers.come(address_, test::Strangers::kMany);
  const auto member = join();
  ASSERT_TRUE(member) << member.error().what;
  (*member)->leave();
}

// All of it is in the backlog before anybody looks: no time can be too short.
TEST_F(Coordination, TheErrorAboutAMissingRankCountsTheStrangers) {
  agreement_.size = 2;
  nlohmann::json hello = to_json(agreement_);
  hello["rank"] = 0;
  const Connection silent = come("no hello"), other = come({{"token", "of another run"}});
  Connection rank = come(hello);
  identity_.listen_fd = listener_.release();
  const auto coordinator = Coordinator::start(identity_, agreement_, 0.3);
  ASSERT_TRUE(coordinator) << coordinator.error().what;
  const Frame verdict = next(&rank);
  EXPECT_EQ(verdict.type, FrameType::kVerdict);
  EXPECT_NE(text_in(verdict.body, "text").find("rank 1 of 2; 2 strangers were turned away"),
            std::string::npos)
      << verdict.body;
}

TEST_F(Coordination, ARankThatIsResetBeforeItsWelcomeTriesAgain) {
  auto joined = std::async(std::launch::async, [this] { return join(); });
  abort_connection(accept());
  Connection wire(accept());
  EXPECT_EQ(next(&wire).type, FrameType::kHello);
  wire.queue(FrameType::kWelcome, {{"ranks", {{{"host", "here"}, {"pid", 1}}}}});
  ASSERT_TRUE(wire.flush());
  const auto member = joined.get();
  ASSERT_TRUE(member) << member.error().what;
  EXPECT_EQ((*member)->ranks().size(), 1u);
}

TEST_F(Coordination, ARankThatIsResetSaysWhenNobodyListensAnyMore) {
  auto joined = std::async(std::launch::async, [this] { return join(); });
  Fd first = accept();
  listener_.reset();
  abort_connection(std::move(first));
  const auto member = joined.get();
  ASSERT_FALSE(member);
  EXPECT_NE(member.error().what.find("rank 0 is gone"), std::string::npos) << member.error().what;
}

}  // namespace
}  // namespace slime::rendezvous
