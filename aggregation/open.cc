#include "aggregation/open.h"

#include <utility>

#include "aggregation/dummy_path.h"
#include "aggregation/exchange.h"
#include "aggregation/instant_path.h"
#include "aggregation/mode.h"
#include "aggregation/settings_of.h"
#include "aggregation/switch_path.h"
#include "base/log.h"

namespace slime::aggregation {
namespace {

Result<void> check(const Options& options) {
  if (options.ranks == 0 || options.ranks > sap::kMaxChildren || options.rank >= options.ranks) {
    return fail(make_error(Status::kInvalid, 0,
                           "rank %u of %u cannot be: a switch takes 1 to %u ranks, numbered from 0",
                           options.rank, options.ranks, sap::kMaxChildren));
  }
  return {};
}

Result<Mode> choose_mode(const Options& options, const Settings& settings) {
  if (options.mode == Mode::kNormal) return mode_of(settings.debug_mode);
  if (options.mode <= Mode::kInstant) return options.mode;
  return fail(make_error(Status::kInvalid, 0, "Options::mode: there is no mode %u",
                         static_cast<unsigned>(options.mode)));
}

Card card_of(const Options& options, Mode mode) {
  Card own;
  own.mode = static_cast<uint8_t>(mode);
  own.rank = options.rank;
  own.ranks = options.ranks;
  return own;
}

// Whatever this rank fails at here, it meets the others first, so that they learn of it.
Result<std::unique_ptr<Path>> open_switch_path(const Options& options, const Settings& settings,
                                               Mode mode) {
  if (auto means = check_means(options); !means) return fail(std::move(means.error()));
  Card own = card_of(options, mode);
  auto path = SwitchPath::open(settings, options.device, &own.handle);
  own.well = path ? 1 : 0;
  auto cards = exchange(options, settings, own);
  if (!path) return fail(std::move(path.error()));
  if (!cards) return fail(std::move(cards.error()));
  auto handles = handles_of(*cards, own);
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
    return fail(
        make_error(Status::kConfig, 0,
                   "no switch is named: set Options::switch_address or NCCL_SLIME_SWITCH to "
                   "the host:port of its control channel"));
  }
  return Choice{std::move(*settings), *mode};
}

// As well as can be told where the settings cannot be read.
Mode likely_mode(const Options& options) {
  if (options.mode != Mode::kNormal) return options.mode;
  const std::string name = "NCCL_SLIME_DEBUG_MODE";
  const Environment environment = process_environment();
  std::string text;
  if (const auto at = environment.find(name); at != environment.end()) text = at->second;
  if (const auto at = options.settings.find(name); at != options.settings.end()) text = at->second;
  return mode_of(text).value_or(Mode::kNormal);
}

// The program's own all-gather has no deadline, so the others must not be left alone in it. Those
// at a rendezvous, which needs the settings, hear after its time-out that a rank did not come.
void tell_others(const Options& options) {
  const Mode mode = likely_mode(options);
  const bool alone = mode == Mode::kDummy || mode == Mode::kInstant;
  if (alone || !options.all_gather || !check_means(options)) return;
  Card own = card_of(options, mode);
  own.well = 0;
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

}  // namespace slime::aggregation
