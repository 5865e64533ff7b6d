// From options to a path.

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "aggregation/debug_modes.h"
#include "aggregation/introduction.h"
#include "aggregation/path.h"
#include "base/log.h"

namespace slime::aggregation {
namespace {

Error no_device(const Devices& devices, int device) {
  std::string notes;
  for (const std::string& note : devices.notes()) notes += "; " + note;
  return make_error(Status::kConfig, 0,
                    "there is no device %d, there are %zu; see slime-info and "
                    "NCCL_SLIME_IFNAME%s",
                    device, devices.device_count(), notes.c_str());
}

}  // namespace

Result<std::unique_ptr<SwitchPath>> SwitchPath::open(const Settings& settings, int device,
                                                     Handle* handle) {
  std::unique_ptr<SwitchPath> path(new SwitchPath);
  path->device_ = device;
  auto devices = Devices::open(settings, SteadyClock::instance());
  if (!devices) return fail(std::move(devices.error()));
  path->devices_ = std::move(*devices);
  if (path->devices_->device(device) == nullptr) return fail(no_device(*path->devices_, device));
  auto listener = Listener::open(*path->devices_, device, handle, {.host_memory = true});
  if (!listener) return fail(std::move(listener.error()));
  path->listener_ = std::move(*listener);
  return path;
}

Result<void> SwitchPath::connect(std::span<const Handle> handles, uint32_t rank) {
  auto session = CollComm::connect(*devices_, device_, *listener_, handles, rank);
  if (!session) return fail(std::move(session.error()));
  session_ = std::move(*session);
  listener_.reset();
  return {};
}

namespace {

Result<void> check(const Options& options) {
  if (options.ranks == 0 || options.ranks > sap::kMaxChildren || options.rank >= options.ranks) {
    return fail(Status::kInvalid,
                "rank %u of %u cannot be: a switch takes 1 to %u ranks, numbered from 0",
                options.rank, options.ranks, sap::kMaxChildren);
  }
  return {};
}

Result<Mode> choose_mode(const Options& options, const Settings& settings) {
  if (options.mode == Mode::kNormal) return mode_of(settings.debug_mode);
  if (options.mode <= Mode::kInstant) return options.mode;
  return fail(Status::kInvalid, "Options::mode: there is no mode %u",
              static_cast<unsigned>(options.mode));
}

Introduction introduction_of(const Options& options, Mode mode) {
  Introduction own;
  own.mode = static_cast<uint8_t>(mode);
  own.rank = options.rank;
  own.ranks = options.ranks;
  return own;
}

// A rank that fails here still takes part in the exchange, with `ready` 0: so the others fail at
// once, instead of waiting for it.
Result<std::unique_ptr<Path>> open_switch_path(const Options& options, const Settings& settings,
                                               Mode mode) {
  if (auto means = check_means(options); !means) return fail(std::move(means.error()));
  Introduction own = introduction_of(options, mode);
  auto path = SwitchPath::open(settings, options.device, &own.handle);
  own.ready = path ? 1 : 0;
  auto introductions = exchange(options, settings, own);
  if (!path) return fail(std::move(path.error()));
  if (!introductions) return fail(std::move(introductions.error()));
  auto handles = handles_of(*introductions, own);
  if (!handles) return fail(std::move(handles.error()));
  auto connected = (*path)->connect(*handles, own.rank);
  if (!connected) return fail(std::move(connected.error()));
  return std::move(*path);
}

Result<std::unique_ptr<Path>> open_in(Mode mode, const Options& options, const Settings& settings) {
  if (mode == Mode::kInstant) return std::make_unique<InstantPath>(options.rank, options.ranks);
  if (mode == Mode::kDummy) return DummyPath::open(settings, options.rank, options.ranks);
  return open_switch_path(options, settings, mode);
}

struct Choice {
  Settings settings;
  Mode mode = Mode::kNormal;
};

Result<Choice> choose(const Options& options) {
  auto settings = settings_of(options, process_environment());
  if (!settings) return fail(std::move(settings.error()));
  auto mode = choose_mode(options, *settings);
  if (!mode) return fail(std::move(mode.error()));
  const bool needs_switch = *mode == Mode::kNormal || *mode == Mode::kBypass;
  if (needs_switch && settings->switch_address.empty()) {
    return fail(Status::kConfig,
                "no switch is named: set Options::switch_address or NCCL_SLIME_SWITCH to the "
                "host:port of its control channel");
  }
  return Choice{std::move(*settings), *mode};
}

// The mode that this rank would probably run in, where the settings cannot be read. It decides only
// whether the other ranks expect a record.
Mode likely_mode(const Options& options) {
  if (options.mode != Mode::kNormal) return options.mode;
  const std::string name = "NCCL_SLIME_DEBUG_MODE";
  const Environment environment = process_environment();
  std::string text;
  if (const auto at = environment.find(name); at != environment.end()) text = at->second;
  if (const auto at = options.settings.find(name); at != options.settings.end()) text = at->second;
  return mode_of(text);
}

// The program's own all-gather has no deadline, so every rank must call it, or the others would
// wait for ever. A rendezvous needs the settings, which could not be read: there the others wait
// for this rank until the time-out.
void tell_others(const Options& options) {
  const Mode mode = likely_mode(options);
  const bool alone = mode == Mode::kDummy || mode == Mode::kInstant;
  if (alone || !options.all_gather || !check_means(options)) return;
  Introduction own = introduction_of(options, mode);
  own.ready = 0;
  (void)exchange(options, Settings(), own);
}

}  // namespace

Result<Opened> open_path(const Options& options) {
  auto checked = check(options);
  if (!checked) return fail(std::move(checked.error()));
  auto choice = choose(options);
  if (!choice) {
    tell_others(options);
    return fail(std::move(choice.error()));
  }
  auto path = open_in(choice->mode, options, choice->settings);
  if (!path) return fail(std::move(path.error()));
  if (choice->mode != Mode::kNormal) {
    SLIME_WARN("debugging mode %s, rank %u of %u: %s", name_of(choice->mode), options.rank,
               options.ranks, warning_of(choice->mode));
  }
  return Opened{std::move(*path), std::move(choice->settings), choice->mode};
}

namespace {

std::string text_of(double value) {
  char text[32];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 9);
  return error == std::errc{} ? std::string(text, end) : "?";
}

Environment stated(const Options& options) {
  Environment stated(options.settings.begin(), options.settings.end());
  const auto state = [&stated](const char* name, const std::string& text) {
    if (!text.empty()) stated[name] = text;
  };
  const auto state_seconds = [&stated](const char* name, double seconds) {
    if (seconds != 0) stated[name] = text_of(seconds);
  };
  state("NCCL_SLIME_SWITCH", options.switch_address);
  state("NCCL_SLIME_SWITCH_KEY_FILE", options.key_file);
  state("NCCL_SLIME_IFNAME", options.interfaces);
  if (options.slots != 0) state("NCCL_SLIME_SWITCH_SLOTS", std::to_string(options.slots));
  state_seconds("NCCL_SLIME_CONNECT_TIMEOUT", options.connect_timeout_s);
  state_seconds("NCCL_SLIME_SWITCH_TIMEOUT", options.switch_timeout_s);
  state_seconds("NCCL_SLIME_REQUEST_TIMEOUT", options.operation_timeout_s);
  return stated;
}

}  // namespace

Result<Settings> settings_of(const Options& options, const Environment& environment) {
  for (const auto& [name, value] : options.settings) {
    if (name.starts_with("NCCL_SLIME_")) continue;
    return fail(Status::kInvalid,
                "Options::settings: \"%s\" is no setting; their names begin with NCCL_SLIME_",
                name.c_str());
  }
  Environment all = stated(options);
  std::vector<std::string> unknown;
  auto alone = parse_settings(all, &unknown);
  if (!alone) return alone;
  if (!unknown.empty()) {
    return fail(Status::kInvalid, "Options::settings: %s", unknown.front().c_str());
  }
  all.insert(environment.begin(), environment.end());  // what is there stays
  std::vector<std::string> warnings;
  auto settings = parse_settings(all, &warnings);
  if (settings) std::ranges::move(unusable_here(*settings), std::back_inserter(warnings));
  for (const std::string& warning : warnings) SLIME_WARN("%s", warning.c_str());
  return settings;
}

}  // namespace slime::aggregation
