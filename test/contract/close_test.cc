// What rail.h promises to a sender whose peer closes when it has reported all arrivals. Where the
// world lives in real time, each end has a thread, as the ends of two processes have. Both run on
// one processor and the sender never yields. So it is mostly stopped somewhere in its poll() while
// the receiver takes everything and closes, and the last completions come together with the end.
#include <sched.h>

#include <array>
#include <functional>
#include <thread>

#include "test/contract/worlds.h"

namespace slime::contract {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<uint32_t, 4> kSizes = {4 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr size_t kWorks = 8;
constexpr size_t kFewestCloses = 4 * kSizes.size();  // half of them with confirmations
constexpr std::chrono::milliseconds kTime{1'000};    // for more of them

// One poll; the channel does one direction only, so all that it returns is of one kind.
Status poll(Channel& channel, size_t* count) {
  std::array<Done, 4> done;
  size_t found = 0;
  const Status status = channel.poll(done, &found);
  *count += found;
  return status;
}

class OneProcessor {
 public:
  OneProcessor() {
    EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
    int first = 0;
    while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &before_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneProcessor() { EXPECT_EQ(::sched_setaffinity(0, sizeof before_, &before_), 0); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_ = {};
};

template <typename T>
class RailClose : public Contract<T> {
 protected:
  // The peer of `pair.left` reports all arrivals and closes. Returns how many works were kSent.
  size_t sent_though_closed(Pair& pair, Transfer& ledger) {
    size_t arrived = 0;
    const auto receive = [&] {
      auto& channel = pair.right.channel;
      if (channel == nullptr) return;
      if (poll(*channel, &arrived) != Status::kOk || arrived == kWorks) channel.reset();
    };
    if (!this->world_->properties().in_real_time) {
      return send(pair, ledger, [&] { receive(), this->world_->pump(); });
    }
    const OneProcessor same;
    std::jthread receiver([&](const std::stop_token& stop) {
      for (; !stop.stop_requested(); this->world_->pump()) receive();
    });
    return send(pair, ledger, [] {});
  }

 private:
  size_t send(Pair& pair, const Transfer& ledger, const std::function<void()>& go_on) {
    const auto give_up = Clock::now() + kHangGuard;
    size_t sent = 0;
    while (sent < kWorks && pair.left.status == Status::kOk && Clock::now() < give_up) {
      (void)pair.post(pair.left, kWorks);
      if (pair.left.status == Status::kOk) pair.left.status = poll(*pair.left.channel, &sent);
      go_on();
    }
    EXPECT_TRUE(ledger.unposted().empty());
    return sent;
  }
};
TYPED_TEST_SUITE(RailClose, AllRails, RailName);

TYPED_TEST(RailClose, AllIsSentToAPeerThatReportsAllAndCloses) {
  const auto end = Clock::now() + kTime;
  for (size_t i = 0; i < kFewestCloses || Clock::now() < end; ++i) {
    const uint32_t bytes = kSizes[i % kSizes.size()];
    const bool confirm = i / kSizes.size() % 2 == 1;
    Pair pair(*this->world_, {.confirm_delivery = confirm});
    ASSERT_TRUE(pair.connect()) << this->failures_of(pair);
    Transfer& ledger = pair.transfer(pair.left, std::vector<uint32_t>(kWorks, bytes));
    ASSERT_EQ(this->sent_though_closed(pair, ledger), kWorks)
        << "close " << i << ", works of " << bytes << " bytes, " << (confirm ? "with" : "without")
        << " confirm_delivery: " << this->failures_of(pair);
  }
}

}  // namespace
}  // namespace slime::contract
