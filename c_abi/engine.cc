// Engines, peers and memory of include/slime/slime.h.
#include <thread>

#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

constexpr uint64_t kPauseNs = 100'000;
constexpr double kLongestDeadline = 1e9;  // seconds

uint64_t limit_of(int64_t timeout_ns) {
  return timeout_ns < 0 ? UINT64_MAX : static_cast<uint64_t>(timeout_ns);
}

// Asks until it is so, or the time is over.
template <typename Condition>
bool in_time(uint64_t limit_ns, Condition is_so) {
  const uint64_t begin_ns = steady_now_ns();
  while (!is_so()) {
    if (steady_now_ns() - begin_ns >= limit_ns) return is_so();
    std::this_thread::sleep_for(std::chrono::nanoseconds(kPauseNs));
  }
  return true;
}

}  // namespace

extern "C" {

int slime_open(const slime_options* options, slime_engine** engine) {
  return guarded([&] {
    if (engine == nullptr) return invalid("slime_open: engine is NULL");
    slime_options known = SLIME_OPTIONS_INIT;
    if (!read_struct(options, &known)) {
      return invalid("slime_open: options.size is wrong: begin with SLIME_OPTIONS_INIT");
    }
    const char* const options_text = known.settings != nullptr ? known.settings : "";
    auto environment = with_options(process_environment(), options_text);
    if (!environment) return failed(environment.error());
    auto settings = parse_settings(*environment);
    if (!settings) return failed(settings.error());
    if (!(known.default_deadline_s >= 0 && known.default_deadline_s <= kLongestDeadline)) {
      return invalid("slime_open: default_deadline_s is not between 0 and 1e9");
    }
    EngineOptions chosen;
    chosen.settings = std::move(*settings);
    chosen.terms.lifeline_seconds = chosen.settings.peer_timeout;
    if (known.default_deadline_s > 0) chosen.default_deadline = known.default_deadline_s;
    set_callbacks(known, &chosen);
    auto opened = Engine::open(chosen);
    if (!opened) return failed(opened.error());
    *engine = new slime_engine{std::move(*opened)};
    return static_cast<int>(SLIME_OK);
  });
}

int slime_close(slime_engine* engine) {
  return guarded([&] {
    if (Engine::is_calling_back()) return invalid(kCallsBack);
    delete engine;
    return static_cast<int>(SLIME_OK);
  });
}

int slime_address(slime_engine* engine, void* blob, size_t* bytes) {
  return guarded([&] {
    if (engine == nullptr || blob == nullptr || bytes == nullptr) {
      return invalid("slime_address: an argument is NULL");
    }
    const auto address = engine->engine->address();
    static_assert(SLIME_ADDRESS_BYTES >= sizeof(LinkAddress) + 64);
    if (*bytes < address.size()) {
      return invalid("slime_address: give it SLIME_ADDRESS_BYTES bytes");
    }
    std::memcpy(blob, address.data(), address.size());
    *bytes = address.size();
    return static_cast<int>(SLIME_OK);
  });
}

int slime_add_peer(slime_engine* engine, const void* blob, size_t bytes, slime_peer* peer) {
  return guarded([&] {
    if (engine == nullptr || blob == nullptr || peer == nullptr) {
      return invalid("slime_add_peer: an argument is NULL");
    }
    return tell(engine->engine->add_peer({static_cast<const std::byte*>(blob), bytes}), peer);
  });
}

int slime_connect(slime_engine* engine, slime_peer handle, int64_t timeout_ns) {
  return guarded([&] {
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
  return guarded([&] {
    if (engine == nullptr) return invalid("slime_remove_peer: engine is NULL");
    auto removed = engine->engine->remove_peer(peer);
    return removed ? static_cast<int>(SLIME_OK) : failed(removed.error());
  });
}

int slime_peer_state(slime_engine* engine, slime_peer handle, slime_peer_info* info) {
  return guarded([&] {
    if (engine == nullptr || info == nullptr) {
      return invalid("slime_peer_state: an argument is NULL");
    }
    const auto peer = engine->engine->peer(handle);
    if (peer == nullptr) return invalid("slime_peer_state: no such peer (any more)");
    const Peer::Report report = peer->report();
    result_text() = with_option_names(report.gone_because);
    const slime_peer_info told = {
        sizeof told,    static_cast<int>(report.state), 0, result_text().c_str(), report.rails,
        report.rails_up};
    if (write_struct(told, info)) return static_cast<int>(SLIME_OK);
    return invalid("slime_peer_state: info.size is wrong: begin with SLIME_PEER_INFO_INIT");
  });
}

int slime_register(slime_engine* engine, void* address, size_t bytes, const slime_memory* memory,
                   slime_region* region) {
  return guarded([&] {
    if (engine == nullptr || region == nullptr) {
      return invalid("slime_register: an argument is NULL");
    }
    slime_memory known = SLIME_MEMORY_INIT;
    if (!read_struct(memory, &known) || known.rights > 3 || known.reserved != 0) {
      return invalid(
          "slime_register: memory.size is wrong (begin with SLIME_MEMORY_INIT), a right is "
          "unknown, or reserved is not 0");
    }
    const auto rights = static_cast<uint8_t>(known.rights);
    return tell(engine->engine->register_memory(address, bytes, rights), region);
  });
}

int slime_deregister(slime_engine* engine, slime_region handle, int64_t timeout_ns) {
  return guarded([&] {
    if (engine == nullptr) return invalid("slime_deregister: engine is NULL");
    if (Engine::is_calling_back() && timeout_ns != 0) return invalid(kCallsBack);
    Result<bool> ended = false;
    (void)in_time(limit_of(timeout_ns), [&] {
      ended = engine->engine->deregister(handle);
      return !ended || *ended;
    });
    if (!ended) return failed(ended.error());
    return static_cast<int>(*ended ? SLIME_OK : SLIME_AGAIN);
  });
}

int slime_advertise(slime_engine* engine, slime_region region, void* blob64) {
  return guarded([&] {
    if (engine == nullptr || blob64 == nullptr) {
      return invalid("slime_advertise: an argument is NULL");
    }
    auto blob = engine->engine->advertise(region);
    if (!blob) return failed(blob.error());
    std::memcpy(blob64, blob->data(), blob->size());
    return static_cast<int>(SLIME_OK);
  });
}

int slime_import(slime_engine* engine, slime_peer peer, const void* blob64, slime_remote* remote) {
  return guarded([&] {
    if (engine == nullptr || blob64 == nullptr || remote == nullptr) {
      return invalid("slime_import: an argument is NULL");
    }
    const std::span blob(static_cast<const std::byte*>(blob64), kRegionBlobBytes);
    return tell(engine->engine->import(peer, blob), remote);
  });
}

}  // extern "C"
