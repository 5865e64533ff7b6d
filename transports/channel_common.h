// What the channels of all backends have in common: how a Done is filled in, where an error begins,
// and the sentences that do not depend on the backend.
#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "transports/rail.h"

namespace slime {

inline Done sent(uint64_t cookie) { return {Done::Kind::kSent, 0, 0, cookie}; }
inline Done refused(uint64_t cookie) { return {Done::Kind::kRefused, 0, 0, cookie}; }
inline Done arrived(uint32_t immediate, uint64_t bytes) {
  return {Done::Kind::kArrived, immediate, bytes, 0};
}

// Works of a channel that may be under way at once. `wanted`: ChannelOptions::depth.
struct ChannelDepth {
  explicit ChannelDepth(const RailCaps& caps, uint32_t wanted = 0)
      : writes(caps.send_queue_depth), reads(caps.max_outstanding_reads) {
    if (wanted == 0) return;
    writes = std::min(writes, std::bit_floor(wanted));
    reads = std::min(reads, writes);
  }
  uint32_t writes, reads;
};

// How many of these works there is room for, in their order.
inline size_t count_that_fit(std::span<const Work> works, size_t room_for_writes,
                             size_t room_for_reads) {
  size_t count = 0;
  for (const Work& work : works) {
    size_t& room = work.opcode == Opcode::kRead ? room_for_reads : room_for_writes;
    if (room-- == 0) break;
    ++count;
  }
  return count;
}

// `where` is a rail ("rail eth0"), or a channel ("rail eth0 to 10.0.0.2:4711").
inline Error prefixed(const std::string& where, Error error) {
  error.what = where + ": " + error.what;
  return error;
}
inline Error prefixed(const RailCaps& rail, Error error) {
  return prefixed("rail " + rail.name, std::move(error));
}

// Of these options: a poller of another rail cannot be used.
inline Result<void> check_poller(const Rail& rail, const ChannelOptions& options) {
  if (options.poller == nullptr || &options.poller->rail() == &rail) return {};
  return fail(prefixed(rail.caps(), make_error(Status::kInvalid, 0,
                                               "a channel cannot be opened on a poller of rail %s; "
                                               "open it on one of its own rail, or on none",
                                               options.poller->rail().caps().name.c_str())));
}

inline Error posted_early(const RailCaps& rail) {
  return prefixed(rail, make_error(Status::kInvalid, 0,
                                   "a work was posted before the channel was connected; call "
                                   "connect until it returns ok"));
}
inline Error fenced_off(const std::string& where) {
  return make_error(Status::kRemote, 0, "%s: the channel was fenced off at this end",
                    where.c_str());
}

// ", with 3 works not delivered", or nothing.
inline std::string undelivered(uint64_t works) {
  if (works == 0) return "";
  return ", with " + std::to_string(works) + (works == 1 ? " work" : " works") + " not delivered";
}
inline Error closed_by_peer(uint64_t undelivered_works) {
  return make_error(Status::kRemote, 0,
                    "the peer closed the channel%s; its process ended or closed: look at its log "
                    "first",
                    undelivered(undelivered_works).c_str());
}

}  // namespace slime
