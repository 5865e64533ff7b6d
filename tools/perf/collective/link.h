// The proxy's side of one connection: posts messages and tests the oldest, as NCCL's proxies do
// (src/transport/net.cc, src/transport/coll_net.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/perf/buffer.h"
#include "tools/perf/collective/plan.h"
#include "tools/perf/plugin/plugin.h"

namespace slime::perf {

// The user's buffers of one operation, and of its repetitions.
struct UserBuffers {
  char* input = nullptr;
  char* output = nullptr;
  size_t stride = 0;  // repetition k uses base + stride * (k % repeats)
  uint32_t repeats = 1;

  char* input_of(uint64_t operation) const { return input + stride * (operation % repeats); }
  char* output_of(uint64_t operation) const { return output + stride * (operation % repeats); }
};

// A number of equal operations, one after the other, as on one CUDA stream.
struct Job {
  Shape shape;
  UserBuffers users;
  uint32_t operations = 1;
  bool is_checked = false;
  uint64_t start_ns = 0;         // out
  std::vector<uint64_t> end_ns;  // out: when each operation's kernel ended
};

enum class Activity : uint8_t { kIdle, kMoved, kFailed };

struct Memory {
  char* data = nullptr;
  void* handle = nullptr;
};

// What is registered for one connection.
struct LinkMemory {
  std::array<Memory, kProtocols> send_fifo, receive_fifo;
  void* send_buffer_handle = nullptr;  // the user's buffers; null unless --direct
  void* receive_buffer_handle = nullptr;
  std::vector<Buffer> buffers;
  std::vector<void*> handles;  // all of them
};

// What the plugin has of a link: one direction of a connection, or, with CollNet, both ends of the
// allreduces, whose messages are calls that all ranks make in the same order.
struct Endpoint {
  enum Kind : uint8_t { kSend, kReceive, kReduce };
  Kind kind = kSend;
  const NetTable* net = nullptr;
  const CollTable* coll = nullptr;
  void* comm = nullptr;
  int peer = 0, tag = 0;
};

// Messages are counted from 0 for the life of the connection; message m uses slot m % depth of the
// FIFO.
//
// States of a message: filled by the kernel (what is sent), posted, completed, consumed by the
// kernel (what is received), done. Invariant: each count is at most the one before it. Operations
// on one connection follow each other: the next one's messages are posted when all of the one
// before are done. Thread: the progress thread; others only before the first job and after the
// last.
class Link {
 public:
  explicit Link(const Endpoint& end) : end_(end) {}

  // `flow` is repeated for each operation of the job. `current` is the operation whose kernel runs:
  // receives into the user's memory wait for it.
  void begin(const Flow& flow, const Job& job, const uint64_t* current);
  // Like NCCL, posts at most one message a visit, and tests the oldest where it posted none.
  Activity visit();

  // The kernel's side.
  bool can_fill() const { return filled_ < done_ + geometry_.depth; }
  char* slot_to_fill() const { return slot_in(send_fifo_, filled_); }
  uint64_t flag() const { return filled_ + 1; }  // of the lines of the slot to fill
  void fill(const Step& step);
  bool ready(size_t bytes);  // of payload
  const char* slot_to_consume() const { return slot_in(receive_fifo_, consumed_); }
  void consume();

  bool nothing_in_flight() const { return done_ == filled_; }
  bool all_done() const { return done_ == end_of_job_; }
  const Endpoint& end() const { return end_; }
  const std::string& failure() const { return failure_; }  // which call failed, and how

  LinkMemory memory;

 private:
  struct Slot {
    Memory from, to;
    size_t bytes = 0;
    void* request = nullptr;
    int64_t expected = -1;  // bytes that a receive must bring; -1: not known
  };

  Activity post();
  Activity test_oldest();
  Code start(Slot* slot);
  std::string what(const Slot& slot, bool is_test) const;
  bool place_receive(Slot* slot);
  void retire();
  bool is_filled() const { return end_.kind != Endpoint::kReceive; }
  bool completion_is_optional() const {
    return geometry_.protocol != Protocol::kSimple && end_.net->optional_completion();
  }
  Slot& slot(uint64_t message) { return slots_[message % geometry_.depth]; }
  char* slot_in(const Memory& fifo, uint64_t message) const {
    return fifo.data + message % geometry_.depth * geometry_.slot_bytes;
  }
  Memory place_of(Place place, const Step& step, uint64_t operation, const Memory& fifo,
                  uint64_t message) const;

  const Endpoint end_;
  Geometry geometry_;
  std::vector<Slot> slots_;
  const Flow* flow_ = nullptr;
  const Job* job_ = nullptr;
  const uint64_t* current_ = nullptr;
  Memory send_fifo_, receive_fifo_;
  size_t post_step_ = 0;  // of the next receive, going round the flow's once per operation
  uint64_t filled_ = 0, posted_ = 0, completed_ = 0, consumed_ = 0, done_ = 0;
  uint64_t messages_ = 0;                           // per operation
  uint64_t end_of_operation_ = 0, end_of_job_ = 0;  // the first message after it
  size_t lines_ready_ = 0;                          // of the message to consume
  void* no_profile_ = nullptr;  // what NCCL passes without a profiler: a null handle
  std::string failure_;
};

// A flow with the connections that it uses.
struct Lane {
  const Flow* flow = nullptr;
  Link* send = nullptr;  // null: sends nothing
  Link* recv = nullptr;
};

// Runs the job on this thread (runner.cc), until `stop`.
Result<void> run_job(Job* job, std::span<const Lane> lanes, const std::atomic<bool>& stop,
                     Heartbeat* heartbeat);

}  // namespace slime::perf
