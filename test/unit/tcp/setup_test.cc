// Connecting two tcp channels, and every way in which that may fail.
#include "test/support/own_sockets.h"
#include "test/unit/tcp/support.h"

namespace slime::tcp {
namespace {

std::unique_ptr<Channel> open(Rail& rail, bool active) {
  auto channel = rail.open_channel({.active = active, .confirm_delivery = false});
  EXPECT_TRUE(channel) << channel.error().what;
  return channel ? std::move(*channel) : nullptr;
}

Status outcome(Channel& channel, const ChannelAddress& peer) {
  Status status = Status::kAgain;
  EXPECT_TRUE(eventually([&] { return (status = channel.connect(peer)) != Status::kAgain; }));
  return status;
}

Settings hasty() {
  Settings settings;
  settings.connect_timeout = 0.2;
  return settings;
}

bool mentions(const Channel& channel, const std::string& text) {
  return channel.failure().what.find(text) != std::string::npos;
}

TEST(TcpSetup, NeitherEndIsReadyBeforeBothKnow) {
  const auto left = loopback_rail(), right = loopback_rail();
  const auto active = open(*left, true), passive = open(*right, false);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(active->connect(passive->address()), Status::kAgain);
  EXPECT_EQ(outcome(*passive, active->address()), Status::kOk);
  EXPECT_EQ(outcome(*active, passive->address()), Status::kOk);
  EXPECT_EQ(active->connect(passive->address()), Status::kOk) << "and so it stays";
}

TEST(TcpSetup, TheAddressesOfOneRailShareAListener) {
  const auto rail = loopback_rail();
  const auto first = open(*rail, false), second = open(*rail, false);
  const auto one = *unpack_endpoint(first->address()), two = *unpack_endpoint(second->address());
  EXPECT_EQ(one.address, two.address);
  EXPECT_FALSE(same_nonce(one.nonce, two.nonce));
}

TEST(TcpSetup, NobodyListens) {
  const auto rail = loopback_rail();
  const auto active = open(*rail, true);
  Endpoint nobody{*SocketAddress::parse("127.0.0.1:1"), {}};
  EXPECT_EQ(outcome(*active, pack_endpoint(nobody)), Status::kRemote);
  EXPECT_EQ(active->failure().code, ECONNREFUSED);
  EXPECT_TRUE(mentions(*active, "127.0.0.1:1")) << active->failure().what;
  EXPECT_TRUE(mentions(*active, "rail lo")) << active->failure().what;
  EXPECT_EQ(active->connect(pack_endpoint(nobody)), Status::kRemote) << "it does not try again";
}

TEST(TcpSetup, ThePeerNeverAnswers) {
  const auto rail = loopback_rail(hasty()), other = loopback_rail();
  const auto active = open(*rail, true), passive = open(*other, false);
  EXPECT_EQ(outcome(*active, passive->address()), Status::kTimeout);
  EXPECT_TRUE(mentions(*active, unpack_endpoint(passive->address())->address.to_string()));
  EXPECT_TRUE(mentions(*active, "NCCL_SLIME_CONNECT_TIMEOUT")) << active->failure().what;
}

TEST(TcpSetup, CongestionControlThatIsNotThere) {
  Settings settings = hasty();
  settings.tcp_congestion = "nosuch";
  const auto rail = loopback_rail(settings), other = loopback_rail();
  const auto active = open(*rail, true), passive = open(*other, false);
  EXPECT_EQ(passive->connect(active->address()), Status::kAgain);
  EXPECT_EQ(outcome(*active, passive->address()), Status::kConfig);
  EXPECT_TRUE(mentions(*active, "NCCL_SLIME_TCP_CONGESTION=nosuch")) << active->failure().what;
}

TEST(TcpSetup, TheErrorAboutAPeerThatNeverCameCountsStrangers) {
  const auto rail = loopback_rail(hasty()), other = loopback_rail();
  const auto active = open(*other, true), passive = open(*rail, false);
  const Fd stranger = *start_connect(unpack_endpoint(passive->address())->address);
  ASSERT_EQ(::send(stranger.get(), "GET /", 5, MSG_NOSIGNAL), 5);
  EXPECT_EQ(outcome(*passive, active->address()), Status::kTimeout);
  EXPECT_TRUE(mentions(*passive, "1 stranger")) << passive->failure().what;
}

// A reset before the answer: the peer had more visitors than places.
TEST(TcpSetup, APeerThatResetsIsDialedAgain) {
  const Fd listener = *listen_on(*SocketAddress::parse("127.0.0.1"));
  const auto rail = loopback_rail();
  const auto active = open(*rail, true);
  const ChannelAddress address = pack_endpoint({*local_address(listener), {}});
  Accepted visitor;
  Error error;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(eventually([&] {
      EXPECT_EQ(active->connect(address), Status::kAgain) << active->failure().what;
      return accept_one(listener, &visitor, &error) == Status::kOk;
    }));
    abort_connection(std::move(visitor.fd));
  }
}

TEST(TcpSetup, ThePeerNeverComes) {
  const auto rail = loopback_rail(hasty()), other = loopback_rail();
  const auto active = open(*other, true), passive = open(*rail, false);
  EXPECT_EQ(outcome(*passive, active->address()), Status::kTimeout);
  EXPECT_TRUE(mentions(*passive, "has not connected")) << passive->failure().what;
}

TEST(TcpSetup, ThePeerClosesBeforeItAnswers) {
  const auto rail = loopback_rail(), other = loopback_rail();
  const auto active = open(*rail, true);
  auto passive = open(*other, false);
  const ChannelAddress address = passive->address();
  EXPECT_EQ(active->connect(address), Status::kAgain);
  passive.reset();
  // Another channel of the rail keeps its acceptor going: our hello is a stranger's now.
  const auto bystander = open(*other, false);
  const ChannelAddress nobody = open(*rail, true)->address();
  Status status = Status::kAgain;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(bystander->connect(nobody), Status::kAgain);
    return (status = active->connect(address)) != Status::kAgain;
  }));
  EXPECT_EQ(status, Status::kRemote);
  EXPECT_TRUE(mentions(*active, "its log says why")) << active->failure().what;
}

// What a channel makes of an answer of kGreetingBytes.
std::string verdict_on(std::span<const std::byte> answer) {
  Fd listener = std::move(*listen_on(*SocketAddress::parse("127.0.0.1")));
  const auto rail = loopback_rail();
  const auto active = open(*rail, true);
  const ChannelAddress address = pack_endpoint({*local_address(listener), {}});
  Accepted accepted;
  Error error;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(active->connect(address), Status::kAgain);
    return accept_one(listener, &accepted, &error) == Status::kOk;
  }));
  EXPECT_EQ(::send(accepted.fd.get(), answer.data(), answer.size(), 0), ssize_t(kGreetingBytes));
  EXPECT_EQ(outcome(*active, address), Status::kRemote);
  return active->failure().what;
}

TEST(TcpSetup, SomebodyElseAnswers) {
  const std::string answer = "220 mx.example.org ESMTP";
  const std::string verdict = verdict_on(std::as_bytes(std::span(answer)));
  EXPECT_NE(verdict.find("proxy"), std::string::npos) << verdict;
}

TEST(TcpSetup, AnotherChannelAnswers) {
  const Greeting answer{.nonce = *random_nonce()};
  const std::string verdict = verdict_on(std::as_bytes(std::span(&answer, 1)));
  EXPECT_NE(verdict.find("not of the channel"), std::string::npos) << verdict;
}

TEST(TcpSetup, AddressesThatAreNone) {
  const auto rail = loopback_rail();
  ChannelAddress garbage;
  garbage.fill(std::byte{0xff});
  EXPECT_NE(outcome(*open(*rail, true), garbage), Status::kOk);
  EXPECT_NE(outcome(*open(*rail, false), garbage), Status::kOk);
}

TEST(TcpSetup, FamiliesThatCannotMeet) {
  const auto rail = loopback_rail();
  const auto active = open(*rail, true);
  Endpoint other{*SocketAddress::parse("[::1]:80"), {}};
  EXPECT_EQ(outcome(*active, pack_endpoint(other)), Status::kConfig);
  EXPECT_TRUE(mentions(*active, "NCCL_SLIME_IFNAME")) << active->failure().what;
}

TEST(TcpSetup, OverIpv6) {
  Interface interface = loopback_interface();
  interface.address = *SocketAddress::parse("::1");
  auto rail = TcpRail::open(interface, Settings());
  const auto active = open(*rail, true);
  auto passive = rail->open_channel({});
  if (!passive) GTEST_SKIP() << "no IPv6 here: " << passive.error().what;
  EXPECT_TRUE(eventually([&] {
    const Status left = active->connect((*passive)->address());
    const Status right = (*passive)->connect(active->address());
    EXPECT_TRUE(left == Status::kOk || left == Status::kAgain) << active->failure().what;
    return left == Status::kOk && right == Status::kOk;
  }));
  EXPECT_EQ(active->peer_name().substr(0, 6), "[::1]:");
}

// Each end marks what it sends with the class that it was given.
TEST(TcpSetup, TheTrafficClassOfEachEnd) {
  const auto left = loopback_rail(), right = loopback_rail();
  const auto active = std::move(*left->open_channel({.active = true, .traffic_class = 0x28}));
  const auto passive = std::move(*right->open_channel({.active = false, .traffic_class = 0x4c}));
  EXPECT_EQ(passive->connect(active->address()), Status::kAgain);
  EXPECT_TRUE(eventually([&] {
    const Status there = active->connect(passive->address());
    return passive->connect(active->address()) == Status::kOk && there == Status::kOk;
  }));
  EXPECT_EQ(test::count_marked(0x28), 1u);
  EXPECT_EQ(test::count_marked(0x4c), 1u);
}

TEST(TcpSetup, ThePauseBeforeLostBytesAreSentAgainFollowsThePatience) {
  constexpr int kRtoMaxMs = 44;  // TCP_RTO_MAX_MS
  Settings settings;
  settings.peer_timeout = 24;
  const TestPair pair = connected_pair(false, settings);
  const std::vector<int> sockets = test::own_sockets();
  ASSERT_EQ(sockets.size(), 2u);
  for (const int fd : sockets) {
    const auto pause_ms = test::socket_option(fd, IPPROTO_TCP, kRtoMaxMs);
    if (!pause_ms) GTEST_SKIP() << "NOT TESTED: this kernel has no TCP_RTO_MAX_MS (Linux 6.15)";
    EXPECT_EQ(*pause_ms, 3000);
  }
}

TEST(TcpSetup, ManyPairsInAnyOrder) {
  const auto left = loopback_rail(), right = loopback_rail();
  std::vector<std::unique_ptr<Channel>> active, passive;
  for (int i = 0; i < 30; ++i) {
    active.push_back(open(*left, true));
    passive.push_back(open(*right, false));
  }
  EXPECT_TRUE(eventually([&] {
    bool all = true;
    for (size_t i = 0; i < active.size(); ++i) {
      all &= passive[i]->connect(active[i]->address()) == Status::kOk;
      const size_t k = active.size() - 1 - i;
      all &= active[k]->connect(passive[k]->address()) == Status::kOk;
    }
    return all;
  }));
  for (auto& channel : passive) {
    const Work empty{};
    post_one(*channel, empty);
  }
  for (auto& channel : active) {
    Status status = Status::kOk;
    EXPECT_TRUE(eventually([&] { return !poll_once(*channel, &status).empty(); }));
  }
}

TEST(TcpSetup, PostingTooEarlyIsAnErrorOfTheCaller) {
  const auto rail = loopback_rail();
  const auto channel = open(*rail, true);
  const Work work{};
  size_t taken = 1;
  EXPECT_EQ(channel->post({&work, 1}, &taken), Status::kInvalid);
  EXPECT_EQ(taken, 0u);
  EXPECT_TRUE(mentions(*channel, "before the channel was connected"));
}

}  // namespace
}  // namespace slime::tcp
