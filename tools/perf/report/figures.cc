#include "tools/perf/report/figures.h"

namespace slime::perf {

using nlohmann::json;

Result<json> gather(Member* member, const Tally& tally, double bytes, double bus_factor) {
  const std::vector<uint64_t>& samples_ns = tally.samples.times_ns();
  auto all = member->exchange("results", {{"mean_us", tally.mean_us()},
                                          {"samples_ns", samples_ns},
                                          {"longest_ns", tally.longest_ns},
                                          {"wrong", tally.wrong}});
  if (!all) return fail(all.error());
  double mean_us = 0, slowest_us = 0, max_us = 0;
  std::vector<uint64_t> slowest(samples_ns.size(), 0);
  uint64_t wrong = 0;
  for (const json& part : *all) {
    // Every rank runs this same program, but what comes over a socket is looked at all the same.
    if (!part.is_object() || !part.value("mean_us", json()).is_number() ||
        !part.value("samples_ns", json()).is_array() ||
        part["samples_ns"].size() != slowest.size()) {
      return fail(make_error(Status::kRemote, 0, "a rank sent malformed results"));
    }
    const double mean = part["mean_us"].get<double>();
    mean_us += mean / static_cast<double>(all->size());
    slowest_us = std::max(slowest_us, mean);
    max_us = std::max(max_us, static_cast<double>(number_in(part, "longest_ns", 0)) / 1e3);
    for (size_t i = 0; i < slowest.size(); ++i) {
      const json& sample = part["samples_ns"][i];
      if (sample.is_number_unsigned()) slowest[i] = std::max(slowest[i], sample.get<uint64_t>());
    }
    wrong += static_cast<uint64_t>(number_in(part, "wrong", 1));
  }
  std::sort(slowest.begin(), slowest.end());
  const auto at_us = [&](size_t percent) {
    if (slowest.empty()) return 0.0;
    return static_cast<double>(slowest[slowest.size() * percent / 100]) / 1e3;
  };
  if (slowest.empty()) bytes = 0;
  const double best_us = at_us(0);
  const double algbw = mean_us > 0 ? bytes / mean_us / 1e3 : 0;
  return json{{"operations", tally.operations},
              {"time_us", mean_us},
              {"slowest_rank_us", slowest_us},
              {"best_us", best_us},
              {"median_us", at_us(50)},
              {"p99_us", at_us(99)},
              {"max_us", max_us},
              {"algbw_GBps", algbw},
              {"busbw_GBps", algbw * bus_factor},
              {"best_busbw_GBps", best_us > 0 ? bytes / best_us / 1e3 * bus_factor : 0},
              {"checked", tally.checked},
              {"wrong", tally.checked > 0 ? json(wrong) : json(nullptr)}};
}

}  // namespace slime::perf
