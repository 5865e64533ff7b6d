// The proxy's side of one connection: posts messages and tests the oldest, as NCCL's
// sendProxyProgress and recvProxyProgress do (src/transport/net.cc). Used by the progress thread
// only.
//
// Messages of one direction are counted from 0 for the life of the connection; message m uses slot
// m % depth of the FIFO. Operations on one connection follow each other: the next one's messages
// are posted when all of the one before are done.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tools/perf/collective/communicator.h"
#include "tools/perf/plugin/plugin.h"

namespace slime::perf {

enum class Activity : uint8_t { kIdle, kMoved, kFailed };

// Memory handles of one connection.
struct LinkMemory {
  std::array<Buffer, kProtocols> fifo;
  std::array<void*, kProtocols> fifo_handle{};
  void* send_buffer_handle = nullptr;  // the user's buffers; null unless --direct
  void* receive_buffer_handle = nullptr;
};

// What both directions share.
class Link {
 public:
  Link(const NetTable* net, void* comm, int peer, int tag)
      : net_(net), comm_(comm), peer_(peer), tag_(tag) {}

  LinkMemory& memory() { return memory_; }
  void* comm() const { return comm_; }
  int peer() const { return peer_; }
  // Which call failed, and how.
  const std::string& failure() const { return failure_; }
  uint64_t done() const { return done_; }

 protected:
  struct Slot {
    void* data = nullptr;
    size_t bytes = 0;
    void* handle = nullptr;
    void* request = nullptr;
    size_t expected = 0;  // bytes that a receive must bring
  };

  void begin_operations(const Geometry& geometry, uint64_t messages, uint32_t operations);
  Slot& slot(uint64_t message) { return slots_[message % depth_]; }
  char* fifo(uint64_t message) { return fifo_ + message % depth_ * slot_bytes_; }
  Activity fail_with(const char* call, size_t bytes, Code code);
  // All messages of one operation are done: the next may begin.
  void end_operation() {
    if (done_ == operation_end_ && operation_end_ < end_) operation_end_ += messages_;
  }

  const NetTable* const net_;
  void* const comm_;
  const int peer_, tag_;
  LinkMemory memory_;
  std::array<Slot, kSteps> slots_{};
  Geometry geometry_;
  uint32_t depth_ = kSteps;
  size_t slot_bytes_ = 0;
  char* fifo_ = nullptr;
  void* fifo_handle_ = nullptr;
  uint64_t messages_ = 0;       // per operation
  uint64_t operation_end_ = 0;  // first message of the operation after this one
  uint64_t end_ = 0;            // of all operations
  uint64_t done_ = 0;
  std::string failure_;
};

class SendLink : public Link {
 public:
  using Link::Link;

  void begin(const Geometry& geometry, uint64_t messages, uint32_t operations) {
    begin_operations(geometry, messages, operations);
  }

  // The kernel's side.
  bool can_fill() const { return filled_ < done_ + depth_; }
  uint64_t filled() const { return filled_; }
  char* slot_data() { return fifo(filled_); }
  void fill_fifo(size_t bytes) { fill(slot_data(), bytes, fifo_handle_); }
  void fill(void* data, size_t bytes, void* handle) {
    slot(filled_) = {data, bytes, handle, nullptr, bytes};
    ++filled_;
  }

  bool all_done() const { return done_ == end_; }
  bool nothing_in_flight() const { return done_ == filled_; }

  // NCCL sends at most one message a visit, and tests the oldest where it sent none.
  Activity visit() {
    if (transmitted_ < filled_ && transmitted_ < operation_end_) {
      Slot& next = slot(transmitted_);
      next.request = nullptr;
      const auto code = net_->isend(comm_, next.data, next.bytes, tag_, next.handle, &next.request);
      if (code != nccl::kSuccess) return fail_with("isend", next.bytes, code);
      if (next.request != nullptr) {
        ++transmitted_;
        return Activity::kMoved;
      }
    }
    if (done_ == transmitted_) return Activity::kIdle;
    Slot& oldest = slot(done_);
    int done = 0, size = 0;
    const auto code = net_->test(oldest.request, &done, &size);
    if (code != nccl::kSuccess) return fail_with("test of a send", oldest.bytes, code);
    if (done == 0) return Activity::kIdle;
    ++done_;
    end_operation();
    return Activity::kMoved;
  }

 private:
  uint64_t filled_ = 0, transmitted_ = 0;
};

class RecvLink : public Link {
 public:
  using Link::Link;

  // `current` is the operation whose kernel runs: receives into the user's memory wait for it.
  void begin(const Geometry& geometry, std::span<const Step> steps, uint64_t messages,
             uint32_t operations, const UserBuffers* users, const uint64_t* current);

  // The kernel's side. `bytes` of payload are wanted.
  bool ready(size_t bytes);
  uint64_t consumed() const { return consumed_; }
  const char* slot_data() { return fifo(consumed_); }
  void consume() {
    ++consumed_;
    lines_ready_ = 0;
    retire();
  }

  bool all_done() const { return done_ == end_; }

  // Posts at most one receive a visit, and tests the oldest where it posted none.
  Activity visit() {
    if (posted_ < operation_end_ && posted_ < done_ + depth_) {
      const Activity activity = post();
      if (activity != Activity::kIdle) return activity;
    }
    if (received_ == posted_) return Activity::kIdle;
    return test_oldest();
  }

 private:
  Activity post();
  Activity test_oldest();
  bool completion_is_optional() const {
    return geometry_.protocol != Protocol::kSimple && net_->optional_completion();
  }
  // A slot is free when the message has arrived and the kernel has read it. (LL kernels read it
  // before the network says that it has arrived.)
  void retire() {
    const uint64_t both = consumed_ < received_ ? consumed_ : received_;
    while (done_ < both) {
      if (net_->version >= 7) net_->receive_consumed(comm_, slot(done_).request);
      ++done_;
      end_operation();
    }
  }
  const Step& next_receive();

  std::span<const Step> steps_;
  const UserBuffers* users_ = nullptr;
  const uint64_t* current_ = nullptr;
  size_t post_step_ = 0;  // in steps_, going round once per operation
  uint64_t posted_ = 0, received_ = 0, consumed_ = 0;
  size_t lines_ready_ = 0;  // of the message at consumed_
};

}  // namespace slime::perf
