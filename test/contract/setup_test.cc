// What rail.h promises about how channels come to be.

#include <random>

#include "base/net/socket.h"
#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

template <typename T>
class RailSetup : public Contract<T> {
 protected:
  static std::unique_ptr<Channel> open(Rail& rail, bool active) {
    auto channel = rail.open_channel({active, false, kNoTrafficClass, !active});
    EXPECT_TRUE(channel) << channel.error().what;
    return channel ? std::move(*channel) : nullptr;
  }

  // Calls connect until it is decided, or for as long as anything could take.
  Status decide(Channel& channel, const ChannelAddress& peer, Channel& bystander,
                const ChannelAddress& of_bystander) {
    const auto give_up = std::chrono::steady_clock::now() + kHangGuard;
    Status status = Status::kAgain;
    while (status == Status::kAgain && std::chrono::steady_clock::now() < give_up) {
      status = channel.connect(peer);
      EXPECT_EQ(bystander.connect(of_bystander), Status::kAgain);
      this->world_->pump();
    }
    return status;
  }
};
TYPED_TEST_SUITE(RailSetup, AllRails, RailName);

TYPED_TEST(RailSetup, CapsMakeSense) {
  for (Rail* rail : {&this->world_->left(), &this->world_->right()}) {
    const RailCaps& caps = rail->caps();
    EXPECT_FALSE(caps.name.empty());
    EXPECT_FALSE(caps.transport.empty());
    EXPECT_GE(caps.send_queue_depth, 1U);
    EXPECT_GE(caps.max_batch, 1U);
    EXPECT_LE(caps.max_batch, caps.send_queue_depth);
    EXPECT_GE(caps.max_message_bytes, 1U << 20);
    EXPECT_GT(caps.speed_mbps, 0U);
    const auto control = SocketAddress::parse(caps.oob_address);
    EXPECT_TRUE(control && !control->is_any()) << caps.oob_address;
  }
  EXPECT_NE(this->world_->left().caps().name, this->world_->right().caps().name);
}

TYPED_TEST(RailSetup, AddressesAreStableAndDistinct) {
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<ChannelAddress> addresses;
  for (int i = 0; i < 20; ++i) {
    channels.push_back(this->open(this->world_->left(), i % 2 == 0));
    addresses.push_back(channels.back()->address());
  }
  for (size_t i = 0; i < channels.size(); ++i) {
    EXPECT_EQ(channels[i]->address(), addresses[i]);
    for (size_t k = 0; k < i; ++k) EXPECT_NE(addresses[i], addresses[k]);
  }
  Pair pair(*this->world_, {});
  const ChannelAddress before = pair.left.channel->address();
  const ChannelAddress passive = pair.right.channel->address();
  ASSERT_TRUE(pair.connect());
  EXPECT_EQ(pair.left.channel->address(), before);
  EXPECT_EQ(pair.right.channel->address(), passive);
}

// The first end calls connect for a long time before the other does for the first time.
TYPED_TEST(RailSetup, TheSecondEndMayComeLate) {
  this->in_each_mode([this](Pair& connected) {
    for (const bool left_first : {true, false}) {
      Pair pair(*this->world_, {.left_first = left_first});
      End& first = pair.first();
      for (int i = 0; i < 200; ++i) {
        const Status status = first.channel->connect(pair.other(first).channel->address());
        ASSERT_TRUE(status == Status::kOk || status == Status::kAgain);
        this->world_->pump();
      }
      ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
      pair.transfer(pair.left, {10, 0, 3'000});
      pair.transfer(pair.right, {10, 0, 3'000});
      this->expect_delivery(pair);
    }
    // A channel that is connected stays so, and connect says it again.
    EXPECT_TRUE(connected.connect());
    connected.transfer(connected.left, {77});
    this->expect_delivery(connected);
  });
}

// Each end posts as soon as its own connect is done, whatever the other has seen.
TYPED_TEST(RailSetup, WorksMayOvertakeTheSetUpOfThePeer) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    PairOptions options{.confirm_delivery = seed % 2 == 0, .left_active = seed % 3 == 0};
    options.left_first = seed % 5 < 2;
    Pair pair(*this->world_, options);
    pair.transfer(pair.left, {1, 2'000, 0, 64});
    pair.transfer(pair.right, {5, 1'000, 0, 128});
    pair.left.status = pair.right.status = Status::kAgain;
    pair.first().status =
        pair.first().channel->connect(pair.other(pair.first()).channel->address());
    const auto give_up = std::chrono::steady_clock::now() + kHangGuard;
    while (pair.left.status == Status::kAgain || pair.right.status == Status::kAgain) {
      End& end = random() % 2 == 0 ? pair.left : pair.right;
      if (end.status == Status::kAgain) {
        end.status = end.channel->connect(pair.other(end).channel->address());
      } else {
        pair.post(end, 1 + random() % 3);
        pair.poll(end, 4);
      }
      if (random() % 3 == 0) this->world_->pump();
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    }
    this->expect_delivery(pair);
  }
}

TYPED_TEST(RailSetup, AlienAddressesAreRefused) {
  auto passive = this->open(this->world_->right(), false);
  auto wanted = this->open(this->world_->left(), true);
  for (const ChannelAddress& alien : this->world_->alien_addresses(passive->address())) {
    auto stranger = this->open(this->world_->left(), true);
    const Status status = this->decide(*stranger, alien, *passive, wanted->address());
    EXPECT_NE(status, Status::kOk);
    EXPECT_NE(status, Status::kAgain) << "never decided";
    EXPECT_EQ(stranger->failure().status, status);
    EXPECT_GT(stranger->failure().what.size(), 20U);
    EXPECT_EQ(stranger->connect(alien), status) << "a failure is for good";
    size_t count = 1;
    std::array<Done, 1> done;
    EXPECT_EQ(stranger->poll(done, &count), status);
    EXPECT_EQ(count, 0U);
  }
  // The strangers have not harmed whom they meant.
  Status left = Status::kAgain, right = Status::kAgain;
  for (int i = 0; i < 1'000'000 && (left == Status::kAgain || right == Status::kAgain); ++i) {
    right = passive->connect(wanted->address());
    left = wanted->connect(passive->address());
    this->world_->pump();
  }
  EXPECT_EQ(left, Status::kOk);
  EXPECT_EQ(right, Status::kOk);
}

TYPED_TEST(RailSetup, AChannelThatHasAPeerTakesNoOther) {
  Pair pair(*this->world_, {});
  ASSERT_TRUE(pair.connect());
  auto intruder = this->open(this->world_->left(), true);
  auto bystander = this->open(this->world_->right(), false);
  auto of_bystander = this->open(this->world_->left(), true);
  const Status status =
      this->decide(*intruder, pair.right.channel->address(), *bystander, of_bystander->address());
  EXPECT_NE(status, Status::kOk);
  EXPECT_NE(status, Status::kAgain) << "never decided";
  pair.transfer(pair.left, {100, 5'000});
  this->expect_delivery(pair);
}

TYPED_TEST(RailSetup, AnAddressOfAClosedChannelIsRefused) {
  auto gone = this->open(this->world_->right(), false);
  const ChannelAddress address = gone->address();
  auto bystander = this->open(this->world_->right(), false);
  auto of_bystander = this->open(this->world_->left(), true);
  gone.reset();
  auto late = this->open(this->world_->left(), true);
  const Status status = this->decide(*late, address, *bystander, of_bystander->address());
  EXPECT_NE(status, Status::kOk);
  EXPECT_NE(status, Status::kAgain) << "never decided";
  EXPECT_GT(late->failure().what.size(), 20U);
}

}  // namespace
}  // namespace slime::contract
