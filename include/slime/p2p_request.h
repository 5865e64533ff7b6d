// Requests of libslime for C++20, part of slime/p2p.h.
#pragma once

#include <slime/slime.h>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace slime::p2p {

using std::chrono::nanoseconds;
inline constexpr nanoseconds kNoLimit{-1};
// Of Engine::find(): 30 s. Of Peer::regions(): the engine's default deadline.
inline constexpr nanoseconds kDefaultLimit{-1};

class Error : public std::runtime_error {
 public:
  explicit Error(int status, const char* what = slime_last_error(), bool quiet = true)
      : std::runtime_error(what), status_(status), quiet_(quiet) {}
  int status() const noexcept { return status_; }  // SLIME_ERR_...
  bool quiet() const noexcept { return quiet_; }   // of a request: slime_result

 private:
  int status_;
  bool quiet_;
};

// The end of a request that went well.
struct Done {
  uint64_t bytes = 0;
  nanoseconds queued{}, moved{};
  slime_peer peer = 0;  // of a receive
  uint64_t tag = 0;     // of that message
};

namespace detail {

// True: it is so; false: not yet.
inline bool check(int status) {
  if (status < 0) throw Error(status);
  return status == SLIME_OK;
}

// slime_result, or slime_completion.
template <typename Ended>
Done done_of(const Ended& ended) {
  if (ended.status != SLIME_OK) throw Error(ended.status, ended.text, ended.quiet != 0);
  return {ended.bytes, nanoseconds(ended.queued_ns), nanoseconds(ended.moved_ns), ended.peer,
          ended.tag};
}

// Owns a handle; its end calls `kFree`.
template <int (*kFree)(slime_engine*, uint64_t)>
class Owned {
 public:
  Owned() = default;
  Owned(slime_engine* engine, uint64_t value) : engine_(engine), value_(value) {}
  Owned(Owned&& other) noexcept : engine_(other.engine_), value_(std::exchange(other.value_, 0)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~Owned() {
    if (value_ != 0) (void)kFree(engine_, value_);
  }
  slime_engine* engine() const { return engine_; }
  uint64_t value() const { return value_; }
  void forget() { value_ = 0; }  // it is not valid any more

 private:
  slime_engine* engine_ = nullptr;
  uint64_t value_ = 0;
};
using Handle = Owned<slime_release>;

inline int deregister(slime_engine* engine, slime_region region) {
  return slime_deregister(engine, region, -1);
}

}  // namespace detail

// A request that has begun. The end of this object does not wait (slime_release()): memory that is
// read, written, sent or received into must stay until the request itself has ended.
class [[nodiscard]] Request {
 public:
  Request(slime_engine* engine, slime_request handle) : handle_(engine, handle) {}

  // nullopt: it has not ended within this time.
  [[nodiscard]] std::optional<Done> wait_for(nanoseconds limit) {
    slime_result result = SLIME_RESULT_INIT;
    if (!detail::check(slime_wait(handle_.engine(), handle_.value(), limit.count(), &result))) {
      return std::nullopt;
    }
    handle_.forget();
    return detail::done_of(result);
  }
  Done wait() { return *wait_for(kNoLimit); }
  [[nodiscard]] std::optional<Done> test() { return wait_for(nanoseconds(0)); }
  void cancel() { detail::check(slime_cancel(handle_.engine(), handle_.value())); }

 private:
  detail::Handle handle_;
};

// A coroutine that waits for a request, until Engine::resume_completed() resumes it. It must not be
// destroyed before.
struct Waiter {
  std::coroutine_handle<> coroutine;
  const slime_completion* ended = nullptr;
};

// What a request is to do, before it begins: by start(), or by co_await. It keeps no copy of the
// spans that it was made of. `Submit`: int(const slime_extra&, slime_request*).
template <typename Submit>
class [[nodiscard]] Operation {
 public:
  Operation(slime_engine* engine, Submit submit) : engine_(engine), submit_(std::move(submit)) {}

  Operation&& deadline(nanoseconds limit) && {  // 0: the engine's default
    extra_.deadline_ns = limit.count();
    return std::move(*this);
  }
  Operation&& immediate(uint32_t value) && {
    extra_.flags |= SLIME_WITH_IMMEDIATE;
    extra_.immediate = value;
    return std::move(*this);
  }
  Operation&& notification(std::string_view bytes) && {
    extra_.flags |= SLIME_WITH_NOTIFICATION;
    extra_.notification = bytes.data();
    extra_.notification_bytes = bytes.size();
    return std::move(*this);
  }
  Operation&& flags(uint32_t more) && {  // SLIME_MORE, SLIME_BORROW
    extra_.flags |= more & (SLIME_MORE | SLIME_BORROW);
    return std::move(*this);
  }

  Request start() && {
    slime_request request = 0;
    detail::check(submit_(extra_, &request));
    return Request(engine_, request);
  }

  class Awaiter {
   public:
    explicit Awaiter(Operation operation) : operation_(std::move(operation)) {}
    bool await_ready() const noexcept { return false; }
    // The coroutine may be resumed by another thread before this returns.
    void await_suspend(std::coroutine_handle<> coroutine) {
      waiter_.coroutine = coroutine;
      Operation& operation = operation_;
      operation.extra_.flags |= SLIME_COMPLETES;
      operation.extra_.user = &waiter_;
      slime_request request = 0;
      detail::check(operation.submit_(operation.extra_, &request));
    }
    Done await_resume() const { return detail::done_of(*waiter_.ended); }

   private:
    Operation operation_;
    Waiter waiter_;
  };
  Awaiter operator co_await() && { return Awaiter(std::move(*this)); }

 private:
  slime_engine* engine_;
  Submit submit_;
  slime_extra extra_ = SLIME_EXTRA_INIT;
};

}  // namespace slime::p2p
