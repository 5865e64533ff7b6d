#include "switch/softswitch/shard_thread.h"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <ctime>

#include "base/clock.h"
#include "base/process.h"
#include "settings/times.h"

namespace slime::net {
namespace {

constexpr uint32_t kFailuresInARow = 64;
constexpr int kPauseMs = 1;

}  // namespace

// The controller's side: beginning, commands and end.

ShardThread::ShardThread(Fd socket, const SocketAddress& address, const ShardThreadOptions& options)
    : socket_(std::move(socket)),
      address_(address),
      options_(options),
      shard_(options.index, options.count),
      in_(options.max_lanes),
      out_(socket_.get(), options.segmentation, io_) {}

Result<std::unique_ptr<ShardThread>> ShardThread::start(Fd socket,
                                                        const ShardThreadOptions& options) {
  const auto address = local_address(socket);
  if (!address) return fail(address.error());
  std::unique_ptr<ShardThread> thread(new ShardThread(std::move(socket), *address, options));
  if (thread->in_.empty()) {
    return fail(make_error(Status::kNoMemory, ENOMEM,
                           "no memory for the packet buffers of shard %u with %u lanes",
                           options.index, options.max_lanes));
  }
  if (auto launched = thread->launch(); !launched) return fail(std::move(launched.error()));
  return thread;
}

Result<void> ShardThread::launch() {
  const int code = start_thread_without_signals(&thread_, run, this);
  if (code != 0) {
    return fail(system_error(code, "start the thread of shard %u at %s", options_.index,
                             address_.to_string().c_str()));
  }
  started_ = true;
  (void)(options_.near & CpuSet::of_this_thread()).apply_to(thread_);
  const std::string name = "slime-shard-" + std::to_string(options_.index);
  pthread_setname_np(thread_, name.c_str());  // 15 characters at most
  return {};
}

void* ShardThread::run(void* self) {
  static_cast<ShardThread*>(self)->loop();
  return nullptr;
}

void ShardThread::begin_stop() {
  stop_.store(true, std::memory_order_release);
  wake();
}

ShardThread::~ShardThread() {
  if (!started_) return;
  begin_stop();
  pthread_join(thread_, nullptr);
}

// Sends an empty datagram to the shard's own socket. If the socket's buffer is full, it is lost,
// and not needed: the thread is awake.
void ShardThread::wake() {
  (void)sendto(socket_.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, address_.data(),
               address_.size());
}

// Posts the command, wakes the thread, and waits for the command's end or the deadline.
Result<void> ShardThread::call(const std::function<void(Shard&)>& command) {
  std::unique_lock lock(mutex_);
  command_ = &command;
  called_.store(true, std::memory_order_release);
  wake();
  const auto done = [this] { return command_ == nullptr; };
  if (changed_.wait_for(lock, std::chrono::nanoseconds(times::kShardCommand), done)) return {};
  if (running_) {
    // Commands are short: it is about to end, and its memory is ours.
    changed_.wait(lock, done);
    return {};
  }
  command_ = nullptr;
  return fail(make_error(Status::kTimeout, ETIMEDOUT,
                         "shard %u at %s took no command for %lld seconds; is the machine "
                         "overloaded, or the process stopped?",
                         options_.index, address_.to_string().c_str(),
                         static_cast<long long>(times::kShardCommand / times::kSecond)));
}

uint64_t ShardThread::cpu_ns() const {
  clockid_t clock;
  timespec used{};
  if (pthread_getcpuclockid(thread_, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

// The shard's own side, the data path: receive a batch, handle it, send the answers, again.

// The thread waits for packets, commands and its end in one blocking receive call; wake() ends it.
// Measured with bench-switch against poll(2) on the socket and an eventfd whenever the socket is
// empty: latency is the same, but the two more system calls of every wait took a tenth of the
// packet rate where batches are small. A lost wake-up costs kIdleUs; a thread with traffic looks
// for commands after every batch.
void ShardThread::loop() {
  uint32_t failures = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    if (called_.load(std::memory_order_acquire)) run_command();
    const int count = receive();
    if (count > 0) handle_batch(static_cast<uint32_t>(count));
    // EAGAIN: kIdleUs are over. Other errors, such as those of ICMP messages, concern packets that
    // are lost already. But a socket that fails for good must not take the whole processor.
    const bool failed = count < 0 && errno != EAGAIN && errno != EINTR;
    failures = failed ? failures + 1 : 0;
    if (failures > kFailuresInARow) (void)poll(nullptr, 0, kPauseMs);
  }
}

// Packets that are there are taken at once. Without any it spins for busy_poll_us, if that is set,
// and then sleeps in the kernel until a packet or a wake-up comes.
int ShardThread::receive() {
  if (options_.busy_poll_us > 0) {
    const uint64_t end_ns = steady_now_ns() + uint64_t{options_.busy_poll_us} * 1000;
    do {
      const int count = in_.receive(socket_.get(), MSG_DONTWAIT);
      io_.receive_calls.add();
      if (count > 0) return count;
    } while (steady_now_ns() < end_ns && !called_.load(std::memory_order_relaxed) &&
             !stop_.load(std::memory_order_relaxed));
  }
  io_.receive_calls.add();
  return in_.receive(socket_.get(), MSG_WAITFORONE);
}

void ShardThread::handle_batch(uint32_t count) {
  io_.batches.add();
  const uint64_t now = steady_now_ns();
  for (uint32_t index = 0; index < count; ++index) handle(index, now);
  out_.flush();
}

// The payload of an answer is sent from the slot's memory when the batch ends. So a packet that may
// change a slot whose answer is not sent yet has all answers sent first.
void ShardThread::handle(uint32_t index, uint64_t now) {
  std::span<const std::byte> datagram = in_.datagram(index);
  const SocketAddress& from = in_.from(index);
  if (datagram.empty() && from == address_) return;  // of wake()
  io_.packets_in.add();
  io_.bytes_in.add(datagram.size());
  if (in_.truncated(index)) {
    io_.truncated.add();
    datagram = {};  // what is left could pass for a packet of max_lanes
  }
  if (out_.holds(datagram)) {
    io_.early_sends.add();
    out_.flush();
  }
  shard_.handle(datagram, from, now, out_);
}

// The lock is not held while the command runs: call() must be able to find out that it runs.
void ShardThread::run_command() {
  std::unique_lock lock(mutex_);
  called_.store(false, std::memory_order_relaxed);
  if (command_ == nullptr) return;  // given up
  running_ = true;
  lock.unlock();
  (*command_)(shard_);
  lock.lock();
  running_ = false;
  command_ = nullptr;
  changed_.notify_all();
}

}  // namespace slime::net
