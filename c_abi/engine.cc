// Engines of include/slime/slime.h.
#include <algorithm>

#include "c_abi/boundary.h"

using namespace slime;
using namespace slime::api;

namespace {

constexpr double kLongestDeadline = 1e9;  // seconds

// The text of an option, or "" for NULL.
const char* text_of(const char* option) { return option != nullptr ? option : ""; }

}  // namespace

extern "C" {

int slime_open(const slime_options* options, slime_engine** engine) {
  return guarded([&] {
    if (engine == nullptr) return invalid("slime_open: engine is NULL");
    slime_options known = SLIME_OPTIONS_INIT;
    if (!read_struct(options, &known)) {
      return invalid("slime_open: options.size is wrong: begin with SLIME_OPTIONS_INIT");
    }
    auto environment = with_options(process_environment(), text_of(known.settings));
    if (!environment) return failed(environment.error());
    auto settings = parse_settings(*environment);
    if (!settings) return failed(settings.error());
    if (!(known.default_deadline_s >= 0 && known.default_deadline_s <= kLongestDeadline)) {
      return invalid("slime_open: default_deadline_s is not between 0 and 1e9");
    }
    EngineOptions chosen;
    chosen.settings = std::move(*settings);
    chosen.terms.lifeline_seconds = chosen.settings.peer_timeout;
    chosen.name = text_of(known.name);
    if (chosen.name.size() > Peer::kMostNameBytes) {
      return invalid("slime_open: the name has more than 255 bytes");
    }
    chosen.discoverable = text_of(known.discoverable);
    if (known.threads > SLIME_THREADS || known.reserved != 0) {
      return invalid("slime_open: threads is more than 64, or reserved is not 0");
    }
    chosen.threads = std::max(known.threads, 1U);
    if (known.default_deadline_s > 0) chosen.default_deadline = known.default_deadline_s;
    set_callbacks(known, &chosen);
    auto opened = Engine::open(chosen);
    if (!opened) return failed(opened.error());
    *engine = new slime_engine{std::move(*opened)};
    return static_cast<int>(SLIME_OK);
  });
}

// A copy in a forked child cannot be freed: its locks may be held for ever.
int slime_close(slime_engine* engine) {
  if (is_of_parent(engine)) return SLIME_OK;
  return guarded([&] {
    if (Engine::is_calling_back()) return invalid(kCallsBack);
    if (engine != nullptr) engine->engine->close();
    delete engine;
    return static_cast<int>(SLIME_OK);
  });
}

int slime_address(slime_engine* engine, void* blob, size_t* bytes) {
  return guarded(engine, [&] {
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

}  // extern "C"
