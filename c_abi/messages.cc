// Immediates, signals and notifications of include/slime/slime.h.
#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

// Of calls that have no other use for it. Returns what is wrong, or nullptr.
const char* read_terms(const slime_extra* extra, Terms* terms) {
  Extra known;
  if (!read_extra(extra, &known)) return kWrongExtra;
  *terms = known.terms;
  const bool more = known.immediate || known.notification;
  return more ? "only reads and writes have SLIME_WITH_IMMEDIATE or SLIME_WITH_NOTIFICATION"
              : nullptr;
}

static_assert(SLIME_SHORT_BYTES == Tagged::kMostBytes);
static_assert(SLIME_ANY_PEER == TaggedReceive::kAnyPeer &&
              SLIME_ANY_PEER == Expectations::kAnyPeer);

// What slime_send() and slime_recv() have alike. Returns as read_terms().
const char* read_tagged(const slime_engine* engine, std::span<const std::byte> memory,
                        const slime_extra* extra, const slime_request* request, Terms* terms) {
  if (engine == nullptr || request == nullptr || (memory.data() == nullptr && !memory.empty())) {
    return "an argument of slime_send or slime_recv is NULL";
  }
  if (memory.size() > UINTPTR_MAX - reinterpret_cast<uintptr_t>(memory.data())) {
    return "no memory has so many bytes from that address on";
  }
  return read_terms(extra, terms);
}

}  // namespace

extern "C" {

int slime_notify(slime_engine* engine, slime_peer peer, const void* data, size_t bytes,
                 const slime_extra* extra, slime_request* request) {
  return guarded(engine, [&] {
    if (engine == nullptr || request == nullptr || (data == nullptr && bytes > 0)) {
      return invalid("slime_notify: an argument is NULL");
    }
    Terms terms;
    if (const char* const wrong = read_terms(extra, &terms)) return invalid(wrong);
    return tell(engine->engine->notify(peer, {static_cast<const std::byte*>(data), bytes}, terms),
                request);
  });
}

int slime_signal(slime_engine* engine, slime_peer peer, slime_remote remote, uint64_t offset,
                 uint64_t add, int strong, const slime_extra* extra, slime_request* request) {
  return guarded(engine, [&] {
    if (engine == nullptr || request == nullptr) {
      return invalid("slime_signal: an argument is NULL");
    }
    Terms terms;
    if (const char* const wrong = read_terms(extra, &terms)) return invalid(wrong);
    return tell(engine->engine->signal(peer, {remote, offset, add, strong != 0}, terms), request);
  });
}

int slime_notifications(slime_engine* engine, slime_notification* notifications, size_t* count) {
  return guarded(engine, [&] {
    if (engine == nullptr || count == nullptr || (notifications == nullptr && *count > 0)) {
      return invalid("slime_notifications: an argument is NULL");
    }
    size_t told = 0;
    for (const Fetched& one : engine->engine->notifications(*count)) {
      notifications[told++] = {one.peer, one.handle, one.bytes.data(), one.bytes.size()};
    }
    *count = told;
    return static_cast<int>(SLIME_OK);
  });
}

int slime_expect(slime_engine* engine, slime_peer peer, uint32_t immediate, uint64_t count,
                 const slime_extra* extra, slime_request* request) {
  return guarded(engine, [&] {
    if (engine == nullptr || request == nullptr) {
      return invalid("slime_expect: an argument is NULL");
    }
    Terms terms;
    if (const char* const wrong = read_terms(extra, &terms)) return invalid(wrong);
    return tell(engine->engine->expect(peer, immediate, count, terms), request);
  });
}

int slime_send(slime_engine* engine, slime_peer peer, const void* data, size_t bytes, uint64_t tag,
               const slime_extra* extra, slime_request* request) {
  return guarded(engine, [&] {
    Terms terms;
    const std::span message(static_cast<const std::byte*>(data), bytes);
    if (const char* const wrong = read_tagged(engine, message, extra, request, &terms)) {
      return invalid(wrong);
    }
    return tell(engine->engine->send(peer, message, tag, terms), request);
  });
}

int slime_recv(slime_engine* engine, slime_peer peer, void* room, size_t bytes, uint64_t tag,
               uint64_t tag_mask, const slime_extra* extra, slime_request* request) {
  return guarded(engine, [&] {
    Terms terms;
    const std::span memory(static_cast<std::byte*>(room), bytes);
    if (const char* const wrong = read_tagged(engine, memory, extra, request, &terms)) {
      return invalid(wrong);
    }
    return tell(engine->engine->receive({peer, tag, tag_mask}, memory, terms), request);
  });
}

int slime_forget(slime_engine* engine, slime_peer peer, uint32_t immediate) {
  return guarded(engine, [&] {
    if (engine == nullptr) return invalid("slime_forget: engine is NULL");
    const auto forgotten = engine->engine->forget(peer, immediate);
    return forgotten ? static_cast<int>(SLIME_OK) : failed(forgotten.error());
  });
}

}  // extern "C"
