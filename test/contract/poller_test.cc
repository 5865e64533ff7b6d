// What poller.h promises, and Channel::arm() and disarm().
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

using Tags = std::vector<uint64_t>;

template <typename T>
class Pollers : public Contract<T> {
 protected:
  static constexpr int kQuietRounds = 200;

  void SetUp() override {
    Contract<T>::SetUp();
    if (this->world_ == nullptr) return;
    left_ = open(this->world_->left());
    right_ = open(this->world_->right());
    ASSERT_NE(left_, nullptr);
    ASSERT_NE(right_, nullptr);
  }
  static std::unique_ptr<Poller> open(Rail& rail) {
    auto poller = rail.open_poller();
    EXPECT_TRUE(poller) << poller.error().what;
    return poller ? std::move(*poller) : nullptr;
  }

  // Pairs whose tags are their places here.
  void connect(size_t count, bool confirm_delivery = false, uint32_t depth = 0) {
    for (size_t i = 0; i < count; ++i) {
      PairOptions options{.confirm_delivery = confirm_delivery, .depth = depth};
      options.left_poller = left_.get();
      options.right_poller = right_.get();
      options.tag = i;
      pairs_.push_back(std::make_unique<Pair>(*this->world_, options));
      ASSERT_TRUE(pairs_.back()->connect()) << this->failures_of(*pairs_.back());
    }
  }
  static Status arm_when_empty(Pair& pair, End& end) {
    Status status = Status::kAgain;
    while (status == Status::kAgain && end.status == Status::kOk) {
      pair.poll(end, 16);
      status = end.channel->arm();
    }
    return status;
  }
  void arm_all() {
    for (auto& pair : pairs_) {
      ASSERT_EQ(arm_when_empty(*pair, pair->left), Status::kOk);
      ASSERT_EQ(arm_when_empty(*pair, pair->right), Status::kOk);
    }
  }
  static Tags names(Poller& poller, size_t room = 64) {
    Tags tags(room);
    tags.resize(poller.poll(tags));
    return tags;
  }
  Tags await_names(Poller& poller) {
    const auto give_up = std::chrono::steady_clock::now() + kHangGuard;
    Tags tags;
    while ((tags = names(poller)).empty() && std::chrono::steady_clock::now() < give_up) {
      this->world_->pump();
    }
    return tags;
  }
  // What is named in the next while.
  Tags names_soon(Poller& poller) {
    Tags all;
    for (int i = 0; i < kQuietRounds; ++i) {
      this->world_->pump();
      for (const uint64_t tag : names(poller)) all.push_back(tag);
    }
    return all;
  }
  Transfer& post_one(size_t pair, uint32_t bytes = 100) {
    Transfer& transfer = pairs_[pair]->transfer(pairs_[pair]->left, {bytes});
    EXPECT_TRUE(pairs_[pair]->post(pairs_[pair]->left, 1));
    return transfer;
  }
  // One visit of a thread that serves many channels.
  static void serve(Pair& pair, End& end) {
    Status status = Status::kAgain;
    while (status == Status::kAgain && end.status == Status::kOk) {
      pair.post(end, 16);
      if (!pair.poll(end, 3)) status = end.channel->arm();
    }
  }
  uint64_t polls() const {
    uint64_t all = 0;
    for (const auto& pair : pairs_) {
      all += pair->left.channel->counters.polls.get() + pair->right.channel->counters.polls.get();
    }
    return all;
  }

  std::unique_ptr<Poller> left_, right_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};
TYPED_TEST_SUITE(Pollers, RailsWithPollers, RailName);

TYPED_TEST(Pollers, NameTheChannelThatHasSomethingOnce) {
  ASSERT_NO_FATAL_FAILURE(this->connect(20));
  ASSERT_NO_FATAL_FAILURE(this->arm_all());
  const uint64_t polls_before = this->polls();
  EXPECT_EQ(this->names_soon(*this->right_), Tags{});
  const Transfer& first = this->post_one(7);
  EXPECT_EQ(this->await_names(*this->right_), Tags{7});
  EXPECT_EQ(this->names_soon(*this->right_), Tags{}) << "once";
  EXPECT_EQ(this->polls(), polls_before) << "channels were polled, too";
  Pair& pair = *this->pairs_[7];
  ASSERT_TRUE(pair.await_arrival(first, 0));
  this->expect_clean(pair);
}

TYPED_TEST(Pollers, LookAtManyIdleChannelsAndPollNone) {
  const size_t many = this->world_->properties().many_channels;
  ASSERT_NO_FATAL_FAILURE(this->connect(many, false, 4));
  ASSERT_NO_FATAL_FAILURE(this->arm_all());
  const uint64_t polls_before = this->polls();
  EXPECT_EQ(this->names_soon(*this->right_), Tags{});
  if (const auto before = this->world_->nic_calls(this->world_->right())) {
    EXPECT_EQ(this->names(*this->right_), Tags{});
    EXPECT_EQ(this->world_->nic_calls(this->world_->right())->polls - before->polls, 1U);
  }
  const Transfer& last = this->post_one(many - 1);
  EXPECT_EQ(this->await_names(*this->right_), Tags{many - 1});
  EXPECT_EQ(this->polls(), polls_before);
  ASSERT_TRUE(this->pairs_.back()->await_arrival(last, 0));
}

TYPED_TEST(Pollers, DoNotNameWhatIsNotArmed) {
  ASSERT_NO_FATAL_FAILURE(this->connect(2));
  ASSERT_NO_FATAL_FAILURE(this->arm_all());
  Pair& pair = *this->pairs_[1];
  pair.right.channel->disarm();
  const Transfer& first = this->post_one(1);
  EXPECT_EQ(this->names_soon(*this->right_), Tags{});
  ASSERT_TRUE(pair.await_arrival(first, 0));
  ASSERT_EQ(this->arm_when_empty(pair, pair.right), Status::kOk);
  EXPECT_EQ(this->names_soon(*this->right_), Tags{}) << "nothing has come since";
  const Transfer& second = this->post_one(1);
  EXPECT_EQ(this->await_names(*this->right_), Tags{1});
  ASSERT_TRUE(pair.await_arrival(second, 0));
  EXPECT_EQ(this->post_one(1).size(), 1U);
  EXPECT_EQ(this->names_soon(*this->right_), Tags{}) << "it was named, and not armed again";
}

// Armed in the moment that something comes: it is named, or arm() says so.
TYPED_TEST(Pollers, MissNothingThatCameBeforeArming) {
  ASSERT_NO_FATAL_FAILURE(this->connect(1));
  Pair& pair = *this->pairs_[0];
  const Transfer& transfer = this->post_one(0);
  for (int i = 0; i < 100; ++i) this->world_->pump();
  const Status status = pair.right.channel->arm();
  if (status == Status::kOk) {
    EXPECT_EQ(this->await_names(*this->right_), Tags{0});
  } else {
    EXPECT_EQ(status, Status::kAgain);
  }
  ASSERT_TRUE(pair.await_arrival(transfer, 0));
}

TYPED_TEST(Pollers, NameAChannelWhoseWorksAreDone) {
  ASSERT_NO_FATAL_FAILURE(this->connect(3, true));
  const Transfer& transfer = this->post_one(2);
  ASSERT_NO_FATAL_FAILURE(this->arm_all());
  Pair& pair = *this->pairs_[2];
  if (!transfer.was_sent(0)) {  // a NIC confirms it before the peer polls
    Tags tags;
    const auto give_up = std::chrono::steady_clock::now() + kHangGuard;
    while (tags.empty() && std::chrono::steady_clock::now() < give_up) {
      this->serve(pair, pair.right);
      this->world_->pump();
      tags = this->names(*this->left_);
    }
    EXPECT_EQ(tags, Tags{2});
  }
  ASSERT_TRUE(pair.await_end(transfer, 0));
}

TYPED_TEST(Pollers, GiveEachItsTurn) {
  ASSERT_NO_FATAL_FAILURE(this->connect(5));
  ASSERT_NO_FATAL_FAILURE(this->arm_all());
  for (size_t i = 0; i < 5; ++i) this->post_one(i);
  std::map<uint64_t, int> times;
  const auto give_up = std::chrono::steady_clock::now() + kHangGuard;
  while (times.size() < 5 && std::chrono::steady_clock::now() < give_up) {
    this->world_->pump();
    for (const uint64_t tag : this->names(*this->right_, 1)) {
      ++times[tag];
      // Each that was named has something again at once.
      this->post_one(tag);
      Pair& pair = *this->pairs_[tag];
      this->arm_when_empty(pair, pair.right);
    }
  }
  EXPECT_EQ(times.size(), 5U);
}

TYPED_TEST(Pollers, NameAChannelWhosePeerHasClosed) {
  ASSERT_NO_FATAL_FAILURE(this->connect(3));
  ASSERT_NO_FATAL_FAILURE(this->arm_all());
  Pair& pair = *this->pairs_[1];
  pair.right.channel = nullptr;
  EXPECT_EQ(this->await_names(*this->left_), Tags{1});
  ASSERT_TRUE(pair.await_failure(pair.left));
  EXPECT_EQ(pair.left.channel->arm(), pair.left.status) << "the failure, for good";
  EXPECT_EQ(this->names_soon(*this->left_), Tags{});
}

TYPED_TEST(Pollers, ForgetAChannelThatIsClosed) {
  ASSERT_NO_FATAL_FAILURE(this->connect(2));
  ASSERT_NO_FATAL_FAILURE(this->arm_all());
  this->post_one(0);
  for (int i = 0; i < 100; ++i) this->world_->pump();
  this->pairs_[0] = nullptr;
  EXPECT_EQ(this->names_soon(*this->right_), Tags{});
}

TYPED_TEST(Pollers, AChannelThatIsNotConnectedIsNotArmed) {
  auto channel = this->world_->left().open_channel({.poller = this->left_.get()});
  ASSERT_TRUE(channel) << channel.error().what;
  EXPECT_EQ((*channel)->arm(), Status::kInvalid);
  (*channel)->disarm();
}

TYPED_TEST(Pollers, AFencedChannelIsNotArmed) {
  ASSERT_NO_FATAL_FAILURE(this->connect(1));
  End& left = this->pairs_[0]->left;
  left.channel->fence();
  EXPECT_EQ(left.channel->arm(), left.channel->failure().status);
  left.channel->disarm();
}

// Every channel is looked at when it is named, and never else.
TYPED_TEST(Pollers, AreEnoughToMoveEverything) {
  const std::vector<uint32_t> small(40, 100), large(3, 3 << 20), mixed{0, 1, 70'000, 33, 4096};
  for (const bool confirm : {false, true}) {
    SCOPED_TRACE(confirm ? "with confirm_delivery" : "without confirm_delivery");
    this->pairs_.clear();
    ASSERT_NO_FATAL_FAILURE(this->connect(4, confirm));
    for (auto& pair : this->pairs_) {
      // One pair moves much; its memory is most of the test's time.
      for (const auto& lengths : {small, mixed, pair == this->pairs_.front() ? large : mixed}) {
        for (const Opcode opcode : this->opcodes()) {
          pair->transfer(pair->left, lengths, opcode);
          pair->transfer(pair->right, lengths, opcode);
        }
      }
      this->serve(*pair, pair->left);
      this->serve(*pair, pair->right);
    }
    const auto done = [&] {
      return std::ranges::all_of(this->pairs_, [](const auto& p) { return p->complete(); });
    };
    const auto give_up = std::chrono::steady_clock::now() + kHangGuard;
    while (!done() && std::chrono::steady_clock::now() < give_up) {
      this->world_->pump();
      for (const uint64_t tag : this->names(*this->left_, 2)) {
        this->serve(*this->pairs_[tag], this->pairs_[tag]->left);
      }
      for (const uint64_t tag : this->names(*this->right_, 2)) {
        this->serve(*this->pairs_[tag], this->pairs_[tag]->right);
      }
    }
    EXPECT_TRUE(done());
    for (const auto& pair : this->pairs_) this->expect_clean(*pair);
  }
}

TYPED_TEST(Pollers, ServeTheirOwnRailAlone) {
  auto channel = this->world_->left().open_channel({.poller = this->right_.get()});
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().status, Status::kInvalid);
  EXPECT_NE(channel.error().what.find("a poller of rail"), std::string::npos);
  auto without = this->world_->left().open_channel({});
  ASSERT_TRUE(without) << without.error().what;
  EXPECT_EQ((*without)->arm(), Status::kUnsupported);
  (*without)->disarm();
}

}  // namespace
}  // namespace slime::contract
