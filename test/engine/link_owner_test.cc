// A link that owners other than NCCL's messages set up: their words and memory, and a refusal.
#include <algorithm>

#include "link/setup/setup.h"
#include "message/message_owner.h"
#include "test/engine/tcp_transfer.h"
#include "test/support/load/engine_pair.h"
#include "test/support/manual_clock.h"

namespace slime::test {
namespace {

// The connecting end offers a number, and the answer is the next one. From 30 on it is also for how
// many seconds the link lives without a rail.
class CountingOwner final : public LinkOwner {
 public:
  explicit CountingOwner(uint8_t number) { words_.fill(std::byte{number}); }

  OwnerWords offer() const override { return words_; }
  Result<OwnerWords> answer(const OwnerWords& offer) const override {
    OwnerWords next;
    std::ranges::transform(offer, next.begin(),
                           [](std::byte one) { return std::byte(static_cast<int>(one) + 1); });
    return next;
  }
  bool accepts(const OwnerWords& answer) const override { return answer == *this->answer(words_); }
  double lifeline_seconds(const OwnerWords& answer) const override {
    return answer[0] < std::byte{30} ? 0 : std::to_integer<int>(answer[0]);
  }
  uint32_t channel_depth(const OwnerWords& answer) const override {
    return std::to_integer<uint32_t>(answer[0]);
  }
  LinkMemoryBytes memory_bytes(const OwnerWords&, bool active, size_t channels) const override {
    return active ? LinkMemoryBytes{4096 * channels, 12'288}
                  : LinkMemoryBytes{12'288, 4096 * channels};
  }

 private:
  OwnerWords words_;
};

struct End {
  std::unique_ptr<LinkParts> parts;
  std::string error;

  bool settled() const { return parts != nullptr || !error.empty(); }
  void take(Result<std::unique_ptr<LinkParts>> made) {
    if (made) {
      parts = std::move(*made);
    } else {
      error = made.error().what;
    }
  }
};

struct Ends {
  End active, passive;
};

// Until each end has its link or its error.
Ends set_up(TcpHost& from, const LinkOwner& from_owner, LinkListener& listener) {
  Ends ends;
  auto connector = value_of(
      LinkConnector::open(*from.devices, 0, listener.address(), from_owner, kNoTrafficClass));
  EXPECT_TRUE(in_time([&] {
    if (!ends.passive.settled()) ends.passive.take(listener.accept());
    if (!ends.active.settled()) ends.active.take(connector->step());
    return ends.passive.settled() && ends.active.settled();
  }));
  return ends;
}
Ends set_up(const LinkOwner& from_owner, LinkOwner& to_owner) {
  static TcpHost from(rails(2)), to(rails(2));
  auto listener = value_of(LinkListener::open(*to.devices, 0, to_owner, kNoTrafficClass));
  return set_up(from, from_owner, *listener);
}

TEST(LinkOwner, HasItsWordsAndItsMemoryAtBothEnds) {
  const CountingOwner three(3);
  CountingOwner any(0);
  const auto [active, passive] = set_up(three, any);
  ASSERT_NE(active.parts, nullptr) << active.error;
  ASSERT_NE(passive.parts, nullptr) << passive.error;
  OwnerWords four;
  four.fill(std::byte{4});
  EXPECT_EQ(active.parts->words, four);
  EXPECT_EQ(passive.parts->words, four);
  ASSERT_EQ(active.parts->channels.size(), 2u);
  EXPECT_EQ(active.parts->owner_bytes.inbox, 2 * 4096u);
  EXPECT_EQ(active.parts->owner_bytes.outbox, 12'288u);
  const auto pages = [](size_t bytes) { return (bytes + 4095) / 4096 * 4096; };
  EXPECT_EQ(active.parts->inbox.region()->bytes, pages(link_memory_bytes(2 * 4096, 2)));
  EXPECT_EQ(active.parts->outbox.region()->bytes, pages(link_memory_bytes(12'288, 2)));
  EXPECT_EQ(active.parts->peer_inbox.address,
            reinterpret_cast<uint64_t>(passive.parts->inbox.data()));
}

// Both ends follow the answer, whatever each would have.
TEST(LinkOwner, SaysHowManyWorksAChannelHasPlacesFor) {
  const CountingOwner seven(7);
  CountingOwner any(0);
  const auto [active, passive] = set_up(seven, any);
  ASSERT_NE(active.parts, nullptr) << active.error;
  ASSERT_NE(passive.parts, nullptr) << passive.error;
  for (const End* end : {&active, &passive}) {
    EXPECT_EQ(end->parts->channel_depth, 8U);
    const std::vector<Work> works(20);
    size_t taken = 0;
    EXPECT_EQ(end->parts->channels[1].channel->post(works, &taken), Status::kOk);
    EXPECT_EQ(taken, 8U);
  }
}

// Else the last works before a link loses its only rail might be lost, or done twice. Both ends
// follow the answer.
TEST(LinkOwner, OfALinkThatLivesOnHasItsOnlyRailConfirmed) {
  for (const uint8_t number : {7, 40}) {
    const double lifeline = number < 30 ? 0 : number + 1;
    const CountingOwner owner(number);
    CountingOwner any(0);
    TcpHost from(rails(1)), to(rails(1));
    auto listener = value_of(LinkListener::open(*to.devices, 0, any, kNoTrafficClass));
    const auto [active, passive] = set_up(from, owner, *listener);
    ASSERT_NE(active.parts, nullptr) << active.error;
    ASSERT_NE(passive.parts, nullptr) << passive.error;
    EXPECT_EQ(active.parts->lifeline_seconds, lifeline);
    EXPECT_EQ(passive.parts->lifeline_seconds, lifeline);
    Channel& sends = *active.parts->channels[0].channel;
    Channel& receives = *passive.parts->channels[0].channel;
    const auto poll = [](Channel& channel) {
      std::array<Done, 4> done;
      size_t count = 0;
      EXPECT_EQ(channel.poll(done, &count), Status::kOk);
      return count;
    };
    size_t taken = 0;
    const Work work;
    ASSERT_EQ(sends.post({&work, 1}, &taken), Status::kOk);
    const auto sent = [&] { return poll(sends) == 1; };
    if (lifeline > 0) {
      for (int i = 0; i < 100; ++i) EXPECT_FALSE(sent()) << "the peer has not polled";
    } else {
      EXPECT_TRUE(in_time(sent));
    }
    EXPECT_TRUE(in_time([&] { return poll(receives) == 1; }));
    if (lifeline > 0) {
      EXPECT_TRUE(in_time([&] { return (void)poll(receives), sent(); }));
    }
  }
}

// Peers dial such a listener for as long as their links live, whatever came after them.
TEST(LinkOwner, OfLinksThatLiveOnIsListenedForWithoutALimit) {
  for (const std::vector<uint8_t>& numbers : {std::vector<uint8_t>{7}, {40}, {40, 7}}) {
    ManualClock clock;
    TcpHost from(rails(1)), to(rails(1), clock);
    CountingOwner any(0);
    auto listener = value_of(LinkListener::open(*to.devices, 0, any, kNoTrafficClass));
    for (const uint8_t number : numbers) {
      ASSERT_NE(set_up(from, CountingOwner(number), *listener).passive.parts, nullptr);
    }
    ASSERT_TRUE(listener->accept());
    clock.pass(seconds_to_ns(Settings().request_timeout) + 1);
    EXPECT_EQ(static_cast<bool>(listener->accept()), numbers.front() == 40);
  }
}

TEST(LinkOwner, OfAnotherPurposeIsRefusedAndBothEndsSayWhy) {
  const CountingOwner other(3);
  MessageOwner messages(4096);
  const auto [active, passive] = set_up(other, messages);
  for (const std::string& error : {active.error, passive.error}) {
    EXPECT_NE(error.find("this address is for messages"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace slime::test
