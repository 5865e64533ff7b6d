// What rail.h promises about flushers.
#include <array>
#include <memory>
#include <vector>

#include "test/contract/worlds.h"
#include "test/support/test_buffer.h"

namespace slime::contract {
namespace {

constexpr size_t kBytes = 4096;

template <typename T>
class RailFlush : public Contract<T> {
 protected:
  RailFlush() : memory_(kBytes) {
    register_memory();
    auto flusher = this->world_->right().open_flusher();
    EXPECT_TRUE(flusher) << flusher.error().what;
    if (flusher) flusher_ = std::move(*flusher);
  }
  ~RailFlush() override {
    flusher_ = nullptr;
    deregister();
  }

  void register_memory() {
    const MemoryKind kind = this->world_->properties().flushed_kind;
    auto keys = this->world_->right().register_memory({memory_.data(), kBytes, kind});
    EXPECT_TRUE(keys) << keys.error().what;
    if (keys) keys_ = *keys;
  }
  void deregister() {
    if (keys_) this->world_->right().deregister_memory(*std::exchange(keys_, std::nullopt));
  }
  Status begin(size_t offset) { return flusher_->begin(&memory_[offset], offset, *keys_); }
  // Polls until this many reads are complete, or the flusher fails.
  bool await(uint64_t count) {
    uint64_t completed = 0;
    const bool came = test::eventually([&] {
      this->world_->pump();
      return flusher_->poll(&completed) != Status::kOk || completed >= count;
    });
    return came && completed == count;
  }
  // A write of this byte over all of the memory has arrived.
  void arrive(std::byte pattern) {
    pair_ = std::make_unique<Pair>(*this->world_, PairOptions{.confirm_delivery = true});
    ASSERT_TRUE(pair_->connect()) << this->failures_of(*pair_);
    Transfer& ledger = pair_->transfer(pair_->left, {kBytes});
    std::ranges::fill(ledger.source().bytes(), pattern);
    Work work = ledger.works()[0];
    work.remote_address = reinterpret_cast<uint64_t>(memory_.data());
    work.remote_offset = 0;
    work.remote_key = keys_->remote;
    size_t taken = 0;
    ASSERT_EQ(pair_->left.channel->post({&work, 1}, &taken), Status::kOk);
    ASSERT_EQ(taken, 1U);
    ledger.took(taken);
    ASSERT_TRUE(pair_->await_arrival(ledger, 0)) << this->failures_of(*pair_);
  }
  bool is_visible(std::byte pattern) const {
    return memory_ == std::vector<std::byte>(kBytes, pattern);
  }

  std::vector<std::byte> memory_;
  std::optional<MemoryKeys> keys_;
  std::unique_ptr<Flusher> flusher_;
  std::unique_ptr<Pair> pair_;
};
TYPED_TEST_SUITE(RailFlush, RailsThatFlush, RailName);

TYPED_TEST(RailFlush, MakesWhatHasArrivedVisible) {
  ASSERT_NE(this->flusher_, nullptr);
  for (const std::byte pattern : {std::byte{1}, std::byte{2}}) {
    ASSERT_NO_FATAL_FAILURE(this->arrive(pattern));
    ASSERT_EQ(this->begin(kBytes / 2), Status::kOk);
    EXPECT_TRUE(this->await(static_cast<uint64_t>(pattern)));
    EXPECT_TRUE(this->is_visible(pattern));
  }
}

TYPED_TEST(RailFlush, OutlivesTheChannelAndItsPeer) {
  ASSERT_NE(this->flusher_, nullptr);
  ASSERT_NO_FATAL_FAILURE(this->arrive(std::byte{3}));
  this->pair_->right.channel->fence();
  this->pair_ = nullptr;
  ASSERT_EQ(this->begin(0), Status::kOk);
  EXPECT_TRUE(this->await(1));
  EXPECT_TRUE(this->is_visible(std::byte{3}));
}

TYPED_TEST(RailFlush, SaysWhenItHasNoRoom) {
  ASSERT_NE(this->flusher_, nullptr);
  uint64_t begun = 0;
  for (int round = 0; round < 3; ++round) {
    Status status = Status::kOk;
    while (begun < 10'000 && (status = this->begin(begun % kBytes)) == Status::kOk) ++begun;
    ASSERT_EQ(status, Status::kAgain) << begun << " reads under way";
    ASSERT_TRUE(this->await(begun));
  }
}

TYPED_TEST(RailFlush, RefusesWhatIsNotRegistered) {
  ASSERT_NE(this->flusher_, nullptr);
  const MemoryKeys stale = *this->keys_;
  this->deregister();
  const Status begun = this->flusher_->begin(this->memory_.data(), 0, stale);
  EXPECT_TRUE(begun != Status::kOk || !this->await(1)) << "a read of memory that is deregistered";
  const std::string& what = this->flusher_->failure().what;
  EXPECT_NE(what.find(this->world_->right().caps().name), std::string::npos) << what;
}

TYPED_TEST(RailFlush, MayEndWithReadsUnderWay) {
  ASSERT_NE(this->flusher_, nullptr);
  ASSERT_EQ(this->begin(0), Status::kOk);
  auto other = this->world_->right().open_flusher();
  ASSERT_TRUE(other) << other.error().what;
  this->flusher_ = std::move(*other);
  ASSERT_NO_FATAL_FAILURE(this->arrive(std::byte{4}));
  ASSERT_EQ(this->begin(0), Status::kOk);
  EXPECT_TRUE(this->await(1)) << "the reads of another flusher count";
  EXPECT_TRUE(this->is_visible(std::byte{4}));
}

TYPED_TEST(RailFlush, AReadOfMemoryThatWasDeregisteredMeanwhileIsComplete) {
  ASSERT_NE(this->flusher_, nullptr);
  ASSERT_EQ(this->begin(0), Status::kOk);
  this->deregister();
  EXPECT_TRUE(this->await(1)) << this->flusher_->failure().what;
  this->register_memory();
  ASSERT_NO_FATAL_FAILURE(this->arrive(std::byte{5}));
  ASSERT_EQ(this->begin(0), Status::kOk);
  EXPECT_TRUE(this->await(2)) << this->flusher_->failure().what;
  EXPECT_TRUE(this->is_visible(std::byte{5}));
}

}  // namespace
}  // namespace slime::contract
