// Writes into device memory of a peer end when the device has them: two peers in virtual time, over
// rails whose device sees what has arrived only once it is flushed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "test/support/peer_life.h"

namespace slime::test {
namespace {

constexpr uint32_t kRails = 2;
constexpr size_t kBytes = 256 << 10;

RailCaps caps() {
  RailCaps caps = device_memory_caps();
  caps.opcodes |= opcode_bit(Opcode::kWrite) | opcode_bit(Opcode::kRead);
  caps.max_outstanding_reads = 1;
  return caps;
}

// The pieces from the end of the memory to its beginning, a few at a time, as a long request gets
// them.
class PiecesFromTheEnd : public PieceSource {
 public:
  static constexpr size_t kPiece = 256, kFew = 8;
  explicit PiecesFromTheEnd(const Piece& all) : all_(all) {}
  Result<void> refill(PeerRequest& request, size_t most) override {
    for (size_t i = 0; i < std::min(most, kFew) && !at_end(); ++i) {
      left_ -= kPiece;
      request.append({all_.local + left_, all_.memory, all_.remote, left_, kPiece});
    }
    return {};
  }
  bool at_end() const override { return left_ == 0; }
  void rewind() override { left_ = all_.bytes; }

 private:
  const Piece all_;
  uint64_t left_ = all_.bytes;
};

class RemoteFlushesTest : public testing::Test {
 protected:
  RemoteFlushesTest() {
    for (SimHost& host : hosts_) require_flushes(host);
    (void)connect_peers(network_, random_, hosts_, ends_, kRails);
    mine_ = ends_[0]->make_region(from_, 0, 0);
  }
  ~RemoteFlushesTest() override {
    for (auto& end : ends_) end.reset();
  }

  // All of the peer's memory, by a peer that may do this with it. Its pieces come from a source, or
  // it is one.
  std::shared_ptr<PeerRequest> write(uint8_t rights, bool by_source = false) {
    const auto theirs = ends_[1]->make_region(to_, rights, 1, MemoryKind::kCuda);
    handle_ = ends_[1]->messages.regions.add(theirs);
    remote_ = std::make_shared<Remote>(address_of({}, handle_, *theirs));
    auto request = std::make_shared<PeerRequest>();
    request->opcode = Opcode::kWrite;
    request->remotes.push_back(remote_);
    request->regions.push_back(mine_);
    const Piece all{from_.data(), &mine_->memory, remote_.get(), 0, kBytes};
    if (by_source) {
      request->source = std::make_unique<PiecesFromTheEnd>(all);
    } else {
      request->append(all);
    }
    request->messages.push_back(Message::of(MessageKind::kImmediate, uint32_t{7}));
    (void)ends_[0]->peer().submit(request);
    return request;
  }
  // Until it has ended, or `so` is true.
  template <typename So>
  bool move_until(const PeerRequest& request, So so) {
    for (int i = 0; i < 100'000 && !request.done() && !so(); ++i) {
      for (auto& end : ends_) end->move();
      if (!network_.step()) network_.advance(1000);
    }
    return request.done();
  }
  bool move(const PeerRequest& request) {
    return move_until(request, [] { return false; });
  }
  bool is_there() const { return to_ == from_; }
  uint64_t works() const {
    return hosts_[0].rails[0]->works_posted() + hosts_[0].rails[1]->works_posted();
  }

  sim::Network network_{1};
  sim::Random random_{1};
  std::array<SimHost, 2> hosts_ = {SimHost{network_, kRails, caps(), Settings(), "a"},
                                   SimHost{network_, kRails, caps(), Settings(), "b"}};
  std::vector<std::byte> from_ = std::vector<std::byte>(kBytes, std::byte{5}),
                         to_ = std::vector<std::byte>(kBytes);
  bool told_ = false, was_there_ = false;
  std::array<std::unique_ptr<PeerEnd>, 2> ends_ = {
      std::make_unique<PeerEnd>(hosts_[0], std::byte{1}, std::byte{2}, nullptr),
      std::make_unique<PeerEnd>(hosts_[1], std::byte{2}, std::byte{1}, [this](uint64_t, uint32_t) {
        told_ = true;
        was_there_ = is_there();
        return true;
      })};
  std::shared_ptr<Region> mine_;
  std::shared_ptr<Remote> remote_;
  uint64_t handle_ = 0;
};

TEST_F(RemoteFlushesTest, AWriteOverTwoRailsIsThereWhenThePeerIsTold) {
  const auto request = write(kRemoteRead | kRemoteWrite);
  ASSERT_TRUE(move(*request));
  EXPECT_EQ(request->outcome().error.status, Status::kOk) << request->outcome().error.what;
  EXPECT_GT(request->outcome().rail_bytes[0], 0u);
  EXPECT_GT(request->outcome().rail_bytes[1], 0u);
  EXPECT_TRUE(told_ && was_there_);
  EXPECT_TRUE(is_there());
}

TEST_F(RemoteFlushesTest, ManyWaitForAPlaceAmongTheReads) {
  std::vector<std::shared_ptr<PeerRequest>> all;
  for (int i = 0; i < 20; ++i) all.push_back(write(kRemoteRead | kRemoteWrite));
  for (const auto& request : all) {
    ASSERT_TRUE(move(*request));
    EXPECT_EQ(request->outcome().error.status, Status::kOk) << request->outcome().error.what;
  }
  EXPECT_TRUE(is_there());
}

TEST_F(RemoteFlushesTest, MemoryThatThePeerMayNotReadIsNotFlushed) {
  const auto request = write(kRemoteWrite);
  ASSERT_TRUE(move(*request));
  EXPECT_EQ(request->outcome().error.status, Status::kOk) << request->outcome().error.what;
  EXPECT_TRUE(told_);
  EXPECT_FALSE(is_there());
}

// The program that has deregistered it does not wait for the bytes.
TEST_F(RemoteFlushesTest, MemoryThatIsDeregisteredMeanwhileEndsTheWrite) {
  const auto request = write(kRemoteRead | kRemoteWrite);
  const auto all_sent = [&] { return request->outcome().bytes == kBytes; };
  ASSERT_FALSE(move_until(*request, all_sent));
  ends_[1]->messages.regions.remove(handle_);
  ASSERT_TRUE(move(*request));
  EXPECT_EQ(request->outcome().error.status, Status::kOk) << request->outcome().error.what;
  const auto next = write(kRemoteRead | kRemoteWrite);
  ASSERT_TRUE(move(*next));
  EXPECT_EQ(next->outcome().error.status, Status::kOk) << next->outcome().error.what;
  EXPECT_TRUE(is_there());
}

TEST_F(RemoteFlushesTest, ARailThatDiesBeforeItIsReadEndsTheFlush) {
  const auto request = write(kRemoteRead | kRemoteWrite);
  const auto all_sent = [&] { return request->outcome().bytes == kBytes; };
  ASSERT_FALSE(move_until(*request, all_sent));
  hosts_[1].rails[0]->kill(sim::Death::kNoticed);
  hosts_[1].rails[0]->show_device();
  ASSERT_TRUE(move(*request));
  EXPECT_EQ(request->outcome().error.status, Status::kOk) << request->outcome().error.what;
  EXPECT_TRUE(told_ && is_there());
}

TEST_F(RemoteFlushesTest, ALongWriteIsThereWhenThePeerIsTold) {
  const auto request = write(kRemoteRead | kRemoteWrite, true);
  ASSERT_TRUE(move(*request));
  EXPECT_EQ(request->outcome().error.status, Status::kOk) << request->outcome().error.what;
  EXPECT_TRUE(told_ && was_there_);
}

// With all pieces known, and with some that have not begun.
TEST_F(RemoteFlushesTest, AWriteThatIsCancelledIsFlushedBeforeItIsQuiet) {
  for (const bool by_source : {false, true}) {
    const auto request = write(kRemoteRead | kRemoteWrite, by_source);
    const auto some_sent = [&] { return request->outcome().bytes > 0; };
    ASSERT_FALSE(move_until(*request, some_sent));
    EXPECT_TRUE(!by_source || !request->all_begun());
    request->cancel(network_.now_ns());
    ASSERT_TRUE(move(*request));
    EXPECT_EQ(request->outcome().error.status, Status::kCancelled);
    EXPECT_TRUE(request->outcome().quiet);
    const std::vector<std::byte> then = to_;
    for (SimHost& host : hosts_) {
      for (sim::Rail* rail : host.rails) rail->show_device();
    }
    EXPECT_TRUE(to_ == then) << "written after it was quiet";
    std::ranges::fill(to_, std::byte{0});
  }
}

}  // namespace
}  // namespace slime::test
