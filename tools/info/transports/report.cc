#include "tools/info/transports/report.h"

#include <algorithm>

#include "tools/info/columns.h"

namespace slime::info {
namespace {

std::string describe(const TransportState& state) {
  if (!state.exists) return state.reason;
  if (state.rails.empty()) return "no rail here: " + state.reason;
  std::string text = state.rails.size() == 1 ? "rail" : "rails";
  for (const std::string& rail : state.rails) text += " " + rail;
  return text;
}

}  // namespace

bool TransportsReport::usable() const {
  const auto works = [](const TransportState& state) {
    return state.wanted && !state.rails.empty();
  };
  return std::ranges::all_of(states, &TransportState::exists) && std::ranges::any_of(states, works);
}

TransportsReport report_transports(const Settings& settings) {
  return {settings.transports, survey_transports(settings)};
}

void print_transports(const TransportsReport& report, FILE* out) {
  fprintf(out, "Transports, with NCCL_SLIME_TRANSPORTS=%s\n", report.variable.c_str());
  Columns columns;
  for (const TransportState& state : report.states) {
    columns.add({state.name, state.wanted ? "wanted" : "", describe(state)});
  }
  columns.print("  ", out);
}

nlohmann::json transports_json(const TransportsReport& report) {
  nlohmann::json list = nlohmann::json::array();
  for (const TransportState& state : report.states) {
    list.push_back({{"name", state.name},
                    {"exists", state.exists},
                    {"wanted", state.wanted},
                    {"rails", state.rails},
                    {"reason", state.reason}});
  }
  return list;
}

}  // namespace slime::info
