// libslime for C++20: slime.h with objects that release what they name, spans, chrono, and
// coroutines. Header only; it calls slime.h and nothing else, and that says what each call means.
//
//   slime::p2p::Engine engine;
//   slime::p2p::Peer peer = engine.add(address_of_the_other);
//   slime::p2p::Region mine = engine.register_memory(bytes);
//   slime::p2p::Remote theirs = peer.import(region_blob_of_the_other);
//   peer.read(mine.to(theirs, 0, 0, 4096)).start().wait();
//   slime::p2p::Done done = co_await peer.write(pieces).deadline(1s).notification(text);
//
// Calls that fail throw Error, and so do waits for requests that end with an error. Objects may be
// moved, not copied; an Engine lives longer than what it made, and than the coroutines that wait
// for its requests. Threads: any thread may call an Engine and its Peers; other objects, one thread
// at a time. Coroutines go on in the thread that calls Engine::resume_completed().
#pragma once

#include <slime/p2p_request.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace slime::p2p {

// Memory of a peer.
class Remote {
 public:
  explicit Remote(detail::Handle handle) : handle_(std::move(handle)) {}
  slime_remote handle() const { return handle_.value(); }

 private:
  detail::Handle handle_;
};

// Registered memory; its end waits until nobody touches the memory any more.
class Region {
 public:
  Region(slime_engine* engine, slime_region handle) : handle_(engine, handle) {}

  slime_region handle() const { return handle_.value(); }
  std::array<std::byte, SLIME_REGION_BYTES> advertise() const {
    std::array<std::byte, SLIME_REGION_BYTES> blob;
    detail::check(slime_advertise(handle_.engine(), handle(), blob.data()));
    return blob;
  }
  // So many bytes here and there, as one piece of a request.
  slime_assignment to(const Remote& remote, uint64_t local_offset, uint64_t remote_offset,
                      uint64_t length) const {
    return {handle(), remote.handle(), local_offset, remote_offset, length};
  }

 private:
  detail::Owned<detail::deregister> handle_;
};

// A list of pieces that was looked up before.
class Plan {
  auto started(int op, const uint32_t* indices, size_t count) const {
    return Operation(handle_.engine(), [engine = handle_.engine(), plan = handle_.value(), op,
                                        indices, count](const slime_extra& extra, auto* request) {
      return slime_start(engine, plan, op, indices, count, &extra, request);
    });
  }
  auto all(int op) const { return started(op, nullptr, 0); }
  // An empty span is an error; NULL would mean all.
  auto some(int op, std::span<const uint32_t> indices) const {
    static constexpr uint32_t kNone = 0;
    return started(op, indices.empty() ? &kNone : indices.data(), indices.size());
  }

 public:
  explicit Plan(detail::Handle handle) : handle_(std::move(handle)) {}

  auto read() const { return all(SLIME_READ); }
  auto write() const { return all(SLIME_WRITE); }
  auto read(std::span<const uint32_t> indices) const { return some(SLIME_READ, indices); }
  auto write(std::span<const uint32_t> indices) const { return some(SLIME_WRITE, indices); }

 private:
  detail::Handle handle_;
};

// Another engine. It may be copied: it only names the peer.
class Peer {
  template <typename Submit>
  Operation<Submit> operation(Submit submit) const {
    return {engine_, std::move(submit)};
  }
  auto move(int op, std::span<const slime_assignment> pieces) const {
    return operation([=, *this](const slime_extra& extra, auto* request) {
      return slime_submit(engine_, handle_, op, pieces.data(), pieces.size(), &extra, request);
    });
  }
  auto move_one(int op, const slime_assignment& piece) const {
    return operation([=, *this](const slime_extra& extra, auto* request) {
      return slime_submit(engine_, handle_, op, &piece, 1, &extra, request);
    });
  }
  auto move_pages(int op, const slime_pages& pages) const {
    return operation([=, *this](const slime_extra& extra, auto* request) {
      return slime_start_pages(engine_, handle_, op, &pages, &extra, request);
    });
  }

 public:
  Peer(slime_engine* engine, slime_peer handle) : engine_(engine), handle_(handle) {}
  slime_peer handle() const { return handle_; }

  // False: not within this time.
  [[nodiscard]] bool connect(nanoseconds limit = kNoLimit) const {
    return detail::check(slime_connect(engine_, handle_, limit.count()));
  }
  slime_peer_info info() const {
    slime_peer_info info = SLIME_PEER_INFO_INIT;
    detail::check(slime_peer_state(engine_, handle_, &info));
    return info;
  }
  void remove() const { detail::check(slime_remove_peer(engine_, handle_)); }
  Remote import(std::span<const std::byte, SLIME_REGION_BYTES> blob) const {
    slime_remote remote = 0;
    detail::check(slime_import(engine_, handle_, blob.data(), &remote));
    return Remote(detail::Handle(engine_, remote));
  }
  std::vector<slime_remote_info> regions(nanoseconds limit = kDefaultLimit) const {
    std::vector<slime_remote_info> all;
    for (size_t count = 64; all.size() < count;) {
      all.resize(count);
      detail::check(slime_regions(engine_, handle_, limit.count(), all.data(), &count));
      if (count <= all.size()) all.resize(count);
    }
    return all;
  }

  auto read(std::span<const slime_assignment> pieces) const { return move(SLIME_READ, pieces); }
  auto write(std::span<const slime_assignment> pieces) const { return move(SLIME_WRITE, pieces); }
  auto read(const slime_assignment& piece) const { return move_one(SLIME_READ, piece); }
  auto write(const slime_assignment& piece) const { return move_one(SLIME_WRITE, piece); }
  auto read(const slime_pages& pages) const { return move_pages(SLIME_READ, pages); }
  auto write(const slime_pages& pages) const { return move_pages(SLIME_WRITE, pages); }
  Plan prepare(std::span<const slime_assignment> pieces) const {
    slime_plan plan = 0;
    detail::check(slime_prepare(engine_, handle_, pieces.data(), pieces.size(), &plan));
    return Plan(detail::Handle(engine_, plan));
  }

  auto notify(std::string_view bytes) const {
    return operation([=, *this](const slime_extra& extra, auto* request) {
      return slime_notify(engine_, handle_, bytes.data(), bytes.size(), &extra, request);
    });
  }
  auto signal(const Remote& remote, uint64_t offset, uint64_t add, bool strong = false) const {
    return operation([=, *this, to = remote.handle()](const slime_extra& extra, auto* request) {
      return slime_signal(engine_, handle_, to, offset, add, strong, &extra, request);
    });
  }
  auto send(std::span<const std::byte> bytes, uint64_t tag) const {
    return operation([=, *this](const slime_extra& extra, auto* request) {
      return slime_send(engine_, handle_, bytes.data(), bytes.size(), tag, &extra, request);
    });
  }
  auto receive(std::span<std::byte> room, uint64_t tag, uint64_t mask = ~uint64_t{0}) const {
    return operation([=, *this](const slime_extra& extra, auto* request) {
      return slime_recv(engine_, handle_, room.data(), room.size(), tag, mask, &extra, request);
    });
  }
  auto expect(uint32_t immediate, uint64_t count = 1) const {
    return operation([=, *this](const slime_extra& extra, auto* request) {
      return slime_expect(engine_, handle_, immediate, count, &extra, request);
    });
  }

 private:
  slime_engine* engine_;
  slime_peer handle_;
};

// Bytes that a peer has told.
class Notification {
 public:
  Notification(slime_engine* engine, const slime_notification& from)
      : handle_(engine, from.handle),
        peer_(engine, from.peer),
        bytes_(static_cast<const char*>(from.data), from.bytes) {}
  const Peer& peer() const { return peer_; }
  std::string_view bytes() const { return bytes_; }  // as long as this lives

 private:
  detail::Handle handle_;
  Peer peer_;
  std::string_view bytes_;
};

class Engine {
 public:
  explicit Engine(const slime_options& options = SLIME_OPTIONS_INIT) {
    detail::check(slime_open(&options, &engine_));
  }
  Engine(Engine&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)) {}
  Engine& operator=(Engine&& other) noexcept {
    std::swap(engine_, other.engine_);
    return *this;
  }
  ~Engine() {
    if (engine_ != nullptr) (void)slime_close(engine_);
  }

  slime_engine* get() const { return engine_; }
  std::vector<std::byte> address() const {
    return filled(
        [this](void* blob, size_t* bytes) { return slime_address(engine_, blob, bytes); });
  }
  std::vector<std::byte> find(const std::string& host_port,
                              nanoseconds limit = kDefaultLimit) const {
    return filled([&](void* blob, size_t* bytes) {
      return slime_find(engine_, host_port.c_str(), limit.count(), blob, bytes);
    });
  }
  Peer add(std::span<const std::byte> address) {
    slime_peer peer = 0;
    detail::check(slime_add_peer(engine_, address.data(), address.size(), &peer));
    return {engine_, peer};
  }
  std::optional<Peer> accept(nanoseconds limit = kNoLimit) {
    slime_peer_info info = SLIME_PEER_INFO_INIT;
    if (!detail::check(slime_accept(engine_, limit.count(), &info))) return std::nullopt;
    return Peer(engine_, info.peer);
  }
  Peer any_peer() const { return {engine_, SLIME_ANY_PEER}; }  // to receive or expect from
  Region register_memory(std::span<std::byte> memory,
                         const slime_memory& terms = SLIME_MEMORY_INIT) {
    slime_region region = 0;
    detail::check(slime_register(engine_, memory.data(), memory.size(), &terms, &region));
    return {engine_, region};
  }
  std::optional<Notification> notification() {
    slime_notification one;
    size_t count = 1;
    detail::check(slime_notifications(engine_, &one, &count));
    if (count == 0) return std::nullopt;
    return std::optional<Notification>(std::in_place, engine_, one);
  }

  // For poll(2): readable while resume_completed() has something, or what else is asked for.
  int event_fd(uint32_t events = SLIME_EVENT_COMPLETED) {
    int descriptor = -1;
    detail::check(slime_event_fd(engine_, events, &descriptor));
    return descriptor;
  }
  // Resumes coroutines whose requests have ended, in this thread. Returns how many. All requests of
  // this engine that have SLIME_COMPLETES are those of coroutines then. What a coroutine throws out
  // of its promise comes from here; the others are resumed by the next call.
  size_t resume_completed() {
    size_t resumed = 0;
    for (;; ++resumed) {
      slime_completion ended;
      size_t count = 1;
      detail::check(slime_completed(engine_, &ended, &count));
      if (count == 0) return resumed;
      auto* const waiter = static_cast<Waiter*>(ended.user);
      waiter->ended = &ended;
      waiter->coroutine.resume();
    }
  }

 private:
  template <typename Fill>
  static std::vector<std::byte> filled(Fill fill) {
    std::vector<std::byte> blob(SLIME_ADDRESS_BYTES);
    size_t bytes = blob.size();
    detail::check(fill(blob.data(), &bytes));
    blob.resize(bytes);
    return blob;
  }

  slime_engine* engine_ = nullptr;
};

}  // namespace slime::p2p
