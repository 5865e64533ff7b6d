#include "tools/perf/p2p/endpoint.h"

#include <poll.h>

#include <array>
#include <cstring>

#include "base/clock.h"

namespace slime::perf::p2p {
namespace {

constexpr int kLookMs = 1000;  // for a notification, at most

tl::unexpected<Error> refused(const char* call) {
  return fail(Status::kRemote, "%s: %s", call, slime_last_error());
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(size_t bytes) {
  std::unique_ptr<Endpoint> made(new Endpoint);
  made->memory_.resize(bytes);
  if (slime_open(nullptr, &made->engine_) != SLIME_OK) return refused("slime_open");
  if (slime_register(made->engine_, made->memory(), bytes, nullptr, &made->region_) != SLIME_OK) {
    return refused("slime_register");
  }
  return made;
}

Endpoint::~Endpoint() {
  if (engine_ != nullptr) (void)slime_close(engine_);
}

Result<std::vector<std::byte>> Endpoint::address() const {
  std::vector<std::byte> blob(SLIME_ADDRESS_BYTES);
  size_t bytes = blob.size();
  if (slime_address(engine_, blob.data(), &bytes) != SLIME_OK) return refused("slime_address");
  blob.resize(bytes);
  return blob;
}

Result<std::vector<std::byte>> Endpoint::region() const {
  std::vector<std::byte> blob(SLIME_REGION_BYTES);
  if (slime_advertise(engine_, region_, blob.data()) != SLIME_OK) return refused("slime_advertise");
  return blob;
}

Result<void> Endpoint::connect(const std::vector<std::byte>& address,
                               const std::vector<std::byte>& region) {
  if (slime_add_peer(engine_, address.data(), address.size(), &peer_) != SLIME_OK) {
    return refused("slime_add_peer");
  }
  if (region.size() != SLIME_REGION_BYTES ||
      slime_import(engine_, peer_, region.data(), &remote_) != SLIME_OK) {
    return refused("slime_import");
  }
  if (slime_connect(engine_, peer_, -1) != SLIME_OK) return refused("slime_connect");
  return {};
}

slime_peer_info Endpoint::peer() const {
  slime_peer_info info = SLIME_PEER_INFO_INIT;
  (void)slime_peer_state(engine_, peer_, &info);
  return info;
}

Result<Requests> Endpoint::requests(const Layout& layout, const Options& options) {
  open_.assign(layout.slots, 0);
  assignments_.assign(layout.slots, {});
  for (uint32_t slot = 0; slot < layout.slots; ++slot) {
    for (uint32_t i = 0; i < layout.batch; ++i) {
      const uint64_t offset = layout.offset(slot, i);
      assignments_[slot].push_back({region_, remote_, offset, offset, layout.piece});
    }
  }
  if (options.plan) {
    if (auto prepared = prepare(layout); !prepared) return fail(std::move(prepared.error()));
  }
  const auto begin = [this, layout, &options](uint32_t slot) -> Result<void> {
    if (start(layout, options, slot) != SLIME_OK) return refused(name_of(options.operation));
    return {};
  };
  const auto wait = [this](uint32_t slot) -> Result<void> {
    slime_result result = SLIME_RESULT_INIT;
    if (slime_wait(engine_, open_[slot], -1, &result) != SLIME_OK) return refused("slime_wait");
    if (result.status == SLIME_OK) return {};
    return fail(Status::kRemote, "a request ended: %s", result.text);
  };
  return Requests{begin, wait};
}

Result<void> Endpoint::prepare(const Layout& layout) {
  for (const slime_plan plan : plans_) (void)slime_release(engine_, plan);
  plans_.assign(layout.slots, 0);
  const uint64_t begin_ns = steady_now_ns();
  for (uint32_t slot = 0; slot < layout.slots; ++slot) {
    const auto& pieces = assignments_[slot];
    if (slime_prepare(engine_, peer_, pieces.data(), pieces.size(), &plans_[slot]) != SLIME_OK) {
      return refused("slime_prepare");
    }
  }
  prepare_ns_ = static_cast<double>(steady_now_ns() - begin_ns) /
                (static_cast<double>(layout.slots) * layout.batch);
  return {};
}

int Endpoint::start(const Layout& layout, const Options& options, uint32_t slot) {
  const uint64_t offset = layout.offset(slot, 0);
  const auto& pieces = assignments_[slot];
  slime_extra extra = SLIME_EXTRA_INIT;
  if (options.immediate) extra.flags = SLIME_WITH_IMMEDIATE;
  switch (options.operation) {
    case Operation::kSend:
      return slime_send(engine_, peer_, memory() + offset, layout.piece, slot, &extra,
                        &open_[slot]);
    case Operation::kNotify:
      return slime_notify(engine_, peer_, memory() + offset, layout.piece, &extra, &open_[slot]);
    case Operation::kSignal:
      return slime_signal(engine_, peer_, remote_, offset, 1, 0, &extra, &open_[slot]);
    default:
      break;
  }
  const int op = options.operation == Operation::kRead ? SLIME_READ : SLIME_WRITE;
  if (options.plan) {
    return slime_start(engine_, plans_[slot], op, nullptr, 0, &extra, &open_[slot]);
  }
  return slime_submit(engine_, peer_, op, pieces.data(), pieces.size(), &extra, &open_[slot]);
}

// Rank 0 has connected.
Result<void> Endpoint::accept() {
  slime_peer_info info = SLIME_PEER_INFO_INIT;
  if (slime_accept(engine_, kAcceptNs, &info) != SLIME_OK) return refused("slime_accept");
  peer_ = info.peer;
  return {};
}

// From this peer, not from any: then slime_wait() spins for a while, as the plain loop does.
Result<void> Endpoint::post(const Layout& layout, uint32_t slot) {
  if (slime_recv(engine_, peer_, memory() + layout.offset(slot, 0), layout.piece, 0, 0, nullptr,
                 &open_[slot]) != SLIME_OK) {
    return refused("slime_recv");
  }
  return {};
}

Result<void> Endpoint::take(const Layout& layout, Operation operation) {
  if (peer_ == 0) {
    if (auto accepted = accept(); !accepted) return accepted;
  }
  return operation == Operation::kSend ? receive(layout) : fetch(layout);
}

Result<void> Endpoint::receive(const Layout& layout) {
  open_.assign(layout.slots, 0);
  for (uint32_t slot = 0; slot < layout.slots; ++slot) {
    if (auto posted = post(layout, slot); !posted) return posted;
  }
  slime_result result = SLIME_RESULT_INIT;
  for (uint32_t slot = 0;; slot = (slot + 1) % layout.slots) {
    if (slime_wait(engine_, open_[slot], -1, &result) != SLIME_OK) return refused("slime_wait");
    if (result.status != SLIME_OK) return fail(Status::kRemote, "a receive ended: %s", result.text);
    open_[slot] = 0;
    if (result.tag == kLastTag) break;
    if (auto posted = post(layout, slot); !posted) return posted;
  }
  for (const slime_request left : open_) {
    if (left != 0) (void)slime_release(engine_, left);
  }
  return {};
}

// As a program does that has a loop of events. They come in the order of the slots.
Result<void> Endpoint::fetch(const Layout& layout) {
  pollfd ready{-1, POLLIN, 0};
  if (slime_event_fd(engine_, SLIME_EVENT_NOTIFICATIONS, &ready.fd) != SLIME_OK) {
    return refused("slime_event_fd");
  }
  std::array<slime_notification, 64> room;
  for (uint64_t fetched = 0;;) {
    size_t count = room.size();
    if (slime_notifications(engine_, room.data(), &count) != SLIME_OK) {
      return refused("slime_notifications");
    }
    for (size_t i = 0; i < count; ++i, ++fetched) {
      const auto slot = static_cast<uint32_t>(fetched % layout.slots);
      auto taken = take(room[i], memory() + layout.offset(slot, 0), layout.piece);
      if (!taken) return fail(std::move(taken.error()));
      if (!*taken) return {};
    }
    if (count > 0) continue;
    const slime_peer_info other = peer();
    if (other.state == SLIME_PEER_GONE) {
      return fail(Status::kRemote, "the other rank has gone: %s", other.text);
    }
    (void)::poll(&ready, 1, kLookMs);
  }
}

Result<bool> Endpoint::take(const slime_notification& notification, std::byte* to, size_t bytes) {
  const bool last = notification.bytes == 0;
  const bool fits = last || notification.bytes == bytes;
  if (fits && !last) std::memcpy(to, notification.data, bytes);
  (void)slime_release(engine_, notification.handle);
  if (fits) return !last;
  return fail(Status::kRemote, "a notification has %zu bytes, not %zu", notification.bytes, bytes);
}

Result<void> Endpoint::say_last(Operation operation) {
  slime_request request = 0;
  const int begun = operation == Operation::kNotify
                        ? slime_notify(engine_, peer_, nullptr, 0, nullptr, &request)
                        : slime_send(engine_, peer_, nullptr, 0, kLastTag, nullptr, &request);
  if (begun == SLIME_OK && slime_wait(engine_, request, -1, nullptr) == SLIME_OK) return {};
  return refused("the last message");
}

}  // namespace slime::perf::p2p
