// Beginning and end of a shard's thread, and what the controller hands to it.
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <ctime>

#include "switch/softswitch/shard_thread.h"

namespace slime::net {
namespace {

// Far beyond the longest batch; a thread that is later than this is not being scheduled.
constexpr std::chrono::seconds kCommandDeadline{5};

}  // namespace

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

// Signals are for the daemon's own thread: new threads inherit the mask of their maker
// (pthread_sigmask(3)).
Result<void> ShardThread::launch() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int code = pthread_create(&thread_, nullptr, run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  ring();
}

ShardThread::~ShardThread() {
  if (!started_) return;
  begin_stop();
  pthread_join(thread_, nullptr);
}

// Not heard if the socket's buffer is full, and not needed then: the thread is awake.
void ShardThread::ring() {
  (void)sendto(socket_.get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL, address_.data(),
               address_.size());
}

Result<void> ShardThread::call(const std::function<void(Shard&)>& command) {
  std::unique_lock lock(mutex_);
  command_ = &command;
  called_.store(true, std::memory_order_release);
  ring();
  const auto done = [this] { return command_ == nullptr; };
  if (changed_.wait_for(lock, kCommandDeadline, done)) return {};
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
                         static_cast<long long>(kCommandDeadline.count())));
}

uint64_t ShardThread::cpu_ns() const {
  clockid_t clock;
  timespec used{};
  if (pthread_getcpuclockid(thread_, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace slime::net
