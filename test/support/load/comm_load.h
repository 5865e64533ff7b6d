// A steady stream of messages between two comms of this program: as many requests under way as
// asked for, and of each end the oldest is tested, as NCCL does.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "test/support/load/engine_pair.h"

namespace slime::test {

struct CommLoadOptions {
  uint32_t channels = 1;
  uint32_t eager_max = 0;
  size_t message_bytes = 0;
  uint32_t window = kMaxRequests;  // requests under way at each end; at most kMaxRequests
};

class CommLoad {
 public:
  template <typename PassTime>
  CommLoad(Devices& from, Devices& to, const CommLoadOptions& options, PassTime pass_time)
      : options_(options),
        source_(value_of(RegisteredBuffer::make(*from.device(0), options.message_bytes + 1))),
        target_(value_of(RegisteredBuffer::make(*to.device(0), options.message_bytes + 1))),
        pair_(connect_engines(from, to, options.channels, options.eager_max, pass_time)) {}

  // Each does one call and says whether something came of it.
  bool receive() {
    if (receives_.size() == options_.window) return false;
    Request* request = nullptr;
    const Receive receive{target_.data(), options_.message_bytes, 0, target_.region()};
    check(*pair_.receiver, pair_.receiver->irecv({&receive, 1}, false, &request));
    return receives_.add(request);
  }
  bool send() {
    if (sends_.size() == options_.window) return false;
    Request* request = nullptr;
    check(*pair_.sender, pair_.sender->isend(source_.data(), options_.message_bytes, 0,
                                             source_.region(), &request));
    return sends_.add(request);
  }
  bool test_receive() { return test(*pair_.receiver, &receives_); }
  bool test_send() {
    const bool done = test(*pair_.sender, &sends_);
    sent_ += done;
    return done;
  }

  uint64_t sent() const { return sent_; }  // messages that test has reported
  std::byte* source() const { return source_.data(); }
  const std::byte* target() const { return target_.data(); }
  const EnginePair& pair() const { return pair_; }
  uint64_t arrivals() const {  // works at the receiver
    uint64_t sum = 0;
    for (const Channel* channel : pair_.recv_channels) sum += channel->counters.arrivals.get();
    return sum;
  }

 private:
  // Allocates nothing: what is counted is the engine.
  class Requests {
   public:
    uint32_t size() const { return tail_ - head_; }
    Request* oldest() const { return ring_[head_ % ring_.size()]; }
    void pop() { ++head_; }
    bool add(Request* request) {
      if (request != nullptr) ring_[tail_++ % ring_.size()] = request;
      return request != nullptr;
    }

   private:
    std::array<Request*, kMaxRequests> ring_ = {};
    uint32_t head_ = 0, tail_ = 0;
  };

  static void check(const Comm& comm, Status status) {
    if (status != Status::kOk) give_up(comm.failure());
  }
  static bool test(Comm& comm, Requests* requests) {
    if (requests->size() == 0) return false;
    bool done = false;
    check(comm, comm.test(requests->oldest(), &done, nullptr));
    if (done) requests->pop();
    return done;
  }

  const CommLoadOptions options_;
  RegisteredBuffer source_, target_;
  EnginePair pair_;
  Requests sends_, receives_;
  uint64_t sent_ = 0;
};

}  // namespace slime::test
