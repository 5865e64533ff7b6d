#include "bench/engine/loads.h"

#include <array>

#include "test/support/load/bare_link.h"
#include "test/support/load/comm_load.h"
#include "test/support/load/null_hosts.h"

namespace slime::bench {
namespace {

constexpr uint32_t kTurnWorks = kPieceWorks / 4;  // until the peer has its turn

uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

double per_work(uint64_t ns, uint64_t works) {
  return static_cast<double>(ns) / static_cast<double>(works);
}

// A pair of connected null channels and works for them.
struct RawPair {
  RawPair() {
    caps.name = "null";
    left = std::make_unique<test::NullChannel>(network, caps, ChannelOptions{true, false});
    right = std::make_unique<test::NullChannel>(network, caps, ChannelOptions{false, false});
    if (left->connect(right->address()) != Status::kOk) test::give_up(left->failure());
    for (Work& work : works) work.length = kWorkBytes;
  }
  void drain_right() {
    size_t count = done.size();
    while (count == done.size()) {
      if (right->poll(done, &count) != Status::kOk) test::give_up(right->failure());
    }
  }

  RailCaps caps;
  test::NullNetwork network;
  std::unique_ptr<test::NullChannel> left, right;
  std::array<Work, 64> works;
  std::array<Done, 64> done;
};

class RailLoad final : public Load {
 public:
  explicit RailLoad(uint32_t batch) : batch_(batch) {}
  Cost run_piece() override {
    const uint64_t started = now_ns();
    for (uint32_t i = 0; i < kPieceWorks / batch_; ++i) {
      size_t count = 0;
      Status status = channel().post(std::span(pair_.works).first(batch_), &count);
      if (status == Status::kOk) status = channel().poll(pair_.done, &count);
      if (status != Status::kOk || count != batch_) test::give_up(channel().failure());
    }
    const uint64_t ended = now_ns();
    pair_.drain_right();
    return {per_work(ended - started, kPieceWorks), 0};
  }

 private:
  Channel& channel() { return *pair_.left; }  // called as the engine calls it: virtually

  const uint32_t batch_;
  RawPair pair_;
};

class QueueLoad final : public Load {
 public:
  explicit QueueLoad(uint32_t batch)
      : batch_(batch), queue_(PostQueue::fit(PostPolicy(), pair_.caps, 0)) {}
  Cost run_piece() override {
    const uint64_t started = now_ns();
    for (uint32_t i = 0; i < kPieceWorks / batch_; ++i) {
      for (uint32_t k = 0; k < batch_; ++k) queue_.push(pair_.works[k], pair_.works[k].cookie);
      size_t count = 0;
      Status status = queue_.flush(channel(), started);
      if (status == Status::kOk) status = channel().poll(pair_.done, &count);
      if (status != Status::kOk || count == 0) test::give_up(channel().failure());
      for (size_t k = 0; k < count; ++k) queue_.complete(kWorkBytes);
    }
    const uint64_t ended = now_ns();
    pair_.drain_right();
    return {per_work(ended - started, kPieceWorks), 0};
  }

 private:
  Channel& channel() { return *pair_.left; }

  const uint32_t batch_;
  RawPair pair_;
  PostQueue queue_;
};

class LinkLoad final : public Load {
 public:
  LinkLoad(uint32_t rails, uint32_t batch)
      : batch_(batch),
        hosts_(rails, kWorkBytes),
        link_(*hosts_.from, *hosts_.to, rails, kWorkBytes, [] {}) {}
  // With several rails a work is done only when the peer has seen it, so the peer has its turns.
  Cost run_piece() override {
    uint64_t ns = 0;
    const uint64_t before = submitted_;
    while (submitted_ < before + kPieceWorks) {
      const uint64_t started = now_ns();
      for (uint32_t works = 0; works < kTurnWorks; works += batch_) {
        for (uint32_t k = 0; k < batch_; ++k) submitted_ += link_.submit();
        link_.progress();
      }
      ns += now_ns() - started;
      link_.drain_peer();
    }
    return {per_work(ns, submitted_ - before), 0};
  }

 private:
  const uint32_t batch_;
  uint64_t submitted_ = 0;
  test::NullHosts hosts_;
  test::BareLink link_;
};

class MessageLoad final : public Load {
 public:
  MessageLoad(uint32_t rails, uint32_t stripes, const test::CommLoadOptions& options)
      : stripes_(stripes),
        window_(options.window),
        hosts_(rails, kWorkBytes),
        load_(*hosts_.from, *hosts_.to, options, [] {}) {}

  // One window of messages: all received for, all sent, all tested.
  Cost run_piece() override {
    uint64_t sender_ns = 0, receiver_ns = 0;
    for (uint32_t received = 0, begun = 0, sent = 0; received < window_ || sent < window_;) {
      const uint64_t started = now_ns();
      while (load_.receive()) continue;
      while (load_.test_receive()) ++received;
      const uint64_t between = now_ns();
      while (begun < window_ && load_.send()) ++begun;
      while (load_.test_send()) ++sent;
      receiver_ns += between - started;
      sender_ns += now_ns() - between;
    }
    const uint64_t works = uint64_t{window_} * stripes_;
    return {per_work(sender_ns, works), per_work(receiver_ns, works)};
  }

 private:
  const uint32_t stripes_;
  const uint32_t window_;
  test::NullHosts hosts_;
  test::CommLoad load_;
};

}  // namespace

std::unique_ptr<Load> make_rail_load(uint32_t batch) { return std::make_unique<RailLoad>(batch); }
std::unique_ptr<Load> make_queue_load(uint32_t batch) { return std::make_unique<QueueLoad>(batch); }
std::unique_ptr<Load> make_link_load(uint32_t rails, uint32_t batch) {
  return std::make_unique<LinkLoad>(rails, batch);
}
std::unique_ptr<Load> make_message_load(uint32_t rails, uint32_t stripes) {
  const uint32_t window = stripes == 1 ? kMaxRequests : kPieceWorks / stripes;
  const test::CommLoadOptions options{rails, 0, size_t{stripes} * kWorkBytes, window};
  return std::make_unique<MessageLoad>(rails, stripes, options);
}
std::unique_ptr<Load> make_eager_load() {
  return std::make_unique<MessageLoad>(1, 1, test::CommLoadOptions{1, 4096, 8, kMaxRequests / 2});
}

}  // namespace slime::bench
