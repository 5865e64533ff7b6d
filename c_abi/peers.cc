// Peers of include/slime/slime.h: those that the program adds, finds, and accepts.
#include <algorithm>

#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

constexpr uint64_t kLongestFindNs = 30'000'000'000;
constexpr const char* kNoInfoSize = "info.size is wrong: begin with SLIME_PEER_INFO_INIT";

// Before a call that takes a peer out of a list.
bool has_size(const slime_peer_info* info) {
  return info->size >= sizeof *info && info->size <= kLongestStruct;
}

// What this thread was told of a peer last.
Peer::Report& report_text() {
  thread_local Peer::Report report;
  return report;
}

int tell_of(slime_peer handle, Peer& peer, slime_peer_info* info) {
  Peer::Report& report = report_text();
  report = peer.report();
  report.gone_because = with_option_names(report.gone_because);
  const slime_peer_info told = {sizeof told,
                                static_cast<int>(report.state),
                                0,
                                report.gone_because.c_str(),
                                report.rails,
                                report.rails_up,
                                handle,
                                report.name.c_str(),
                                report.address.data(),
                                report.address.size(),
                                report.rail_text.c_str(),
                                report.round_trip_ns,
                                report.works,
                                report.doorbells};
  return write_struct(told, info) ? static_cast<int>(SLIME_OK) : invalid(kNoInfoSize);
}

}  // namespace

extern "C" {

int slime_add_peer(slime_engine* engine, const void* blob, size_t bytes, slime_peer* peer) {
  return guarded(engine, [&] {
    if (engine == nullptr || blob == nullptr || peer == nullptr) {
      return invalid("slime_add_peer: an argument is NULL");
    }
    return tell(engine->engine->add_peer({static_cast<const std::byte*>(blob), bytes}), peer);
  });
}

int slime_connect(slime_engine* engine, slime_peer handle, int64_t timeout_ns) {
  return guarded(engine, [&] {
    if (engine == nullptr) return invalid("slime_connect: engine is NULL");
    const auto peer = engine->engine->peer(handle);
    if (peer == nullptr) return invalid("slime_connect: no such peer (any more)");
    if (Engine::is_calling_back() && timeout_ns != 0) return invalid(kCallsBack);
    peer->connect();
    const auto settled = [&] {
      if (peer->state() == Peer::State::kNew) peer->connect();  // the other end dialed, and failed
      if (!peer->try_move()) engine->engine->attend(peer);
      return peer->state() == Peer::State::kUp || peer->state() == Peer::State::kGone;
    };
    if (!in_time(limit_of(timeout_ns), settled)) return static_cast<int>(SLIME_AGAIN);
    if (peer->state() == Peer::State::kUp) return static_cast<int>(SLIME_OK);
    return failed(make_error(Status::kRemote, 0, "%s", peer->report().gone_because.c_str()));
  });
}

int slime_remove_peer(slime_engine* engine, slime_peer peer) {
  return guarded(engine, [&] {
    if (engine == nullptr) return invalid("slime_remove_peer: engine is NULL");
    auto removed = engine->engine->remove_peer(peer);
    return removed ? static_cast<int>(SLIME_OK) : failed(removed.error());
  });
}

int slime_peer_state(slime_engine* engine, slime_peer handle, slime_peer_info* info) {
  return guarded(engine, [&] {
    if (engine == nullptr || info == nullptr) {
      return invalid("slime_peer_state: an argument is NULL");
    }
    const auto peer = engine->engine->peer(handle);
    if (peer == nullptr) return invalid("slime_peer_state: no such peer (any more)");
    if (!has_size(info)) return invalid(kNoInfoSize);
    return tell_of(handle, *peer, info);
  });
}

int slime_accept(slime_engine* engine, int64_t timeout_ns, slime_peer_info* info) {
  return guarded(engine, [&] {
    if (engine == nullptr || info == nullptr) return invalid("slime_accept: an argument is NULL");
    if (!has_size(info)) return invalid(kNoInfoSize);
    if (Engine::is_calling_back() && timeout_ns != 0) return invalid(kCallsBack);
    for (;;) {
      const uint64_t handle = engine->engine->accept(limit_of(timeout_ns));
      if (handle == 0) return static_cast<int>(SLIME_AGAIN);
      const auto peer = engine->engine->peer(handle);
      if (peer != nullptr) return tell_of(handle, *peer, info);
    }
  });
}

int slime_find(slime_engine* engine, const char* host_port, int64_t timeout_ns, void* blob,
               size_t* bytes) {
  return guarded(engine, [&] {
    if (engine == nullptr || host_port == nullptr || blob == nullptr || bytes == nullptr) {
      return invalid("slime_find: an argument is NULL");
    }
    if (Engine::is_calling_back()) return invalid(kCallsBack);
    const uint64_t limit_ns = timeout_ns < 0 ? kLongestFindNs : limit_of(timeout_ns);
    const auto found = find_engine(host_port, limit_ns);
    if (!found) return failed(found.error());
    if (*bytes < found->size()) return invalid("slime_find: give it SLIME_ADDRESS_BYTES bytes");
    std::ranges::copy(*found, static_cast<std::byte*>(blob));
    *bytes = found->size();
    return static_cast<int>(SLIME_OK);
  });
}

}  // extern "C"
