#include "aggregation/open.h"

#include <slime/log.h>

#include <utility>

#include "aggregation/dummy_path.h"
#include "aggregation/exchange.h"
#include "aggregation/instant_path.h"
#include "aggregation/mode.h"
#include "aggregation/settings_of.h"
#include "aggregation/switch_path.h"

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

// Whatever this rank fails at, it meets the others first, so that they learn of it.
Result<std::unique_ptr<Path>> open_switch_path(const Options& options, const Settings& settings,
                                               Mode mode) {
  if (auto means = check_means(options); !means) return fail(std::move(means.error()));
  Card own;
  own.mode = static_cast<uint8_t>(mode);
  own.rank = options.rank;
  own.ranks = options.ranks;
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
  if (settings.switch_address.empty()) {
    return fail(
        make_error(Status::kConfig, 0,
                   "no switch is named: set Options::switch_address or NCCL_SLIME_SWITCH to "
                   "the host:port of its control channel"));
  }
  return open_switch_path(options, settings, mode);
}

}  // namespace

Result<Opened> open_path(const Options& options) {
  auto checked = check(options);
  if (!checked) return fail(std::move(checked.error()));
  auto settings = settings_of(options, process_environment());
  if (!settings) return fail(std::move(settings.error()));
  auto mode = choose_mode(options, *settings);
  if (!mode) return fail(std::move(mode.error()));
  auto path = open_in(*mode, options, *settings);
  if (!path) return fail(std::move(path.error()));
  if (*mode != Mode::kNormal) {
    SLIME_WARN("debugging mode %s, rank %u of %u: %s", name_of(*mode), options.rank, options.ranks,
               warning_of(*mode));
  }
  return Opened{std::move(*path), std::move(*settings), *mode};
}

}  // namespace slime::aggregation
