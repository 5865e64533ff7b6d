// Applies NCCL's rules to the environment: what it tries to open, and what comes of each attempt.
#include "tools/info/loading.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>

#include "tools/common/net_table.h"

namespace slime::info {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

bool same_name(const std::string& left, const char* right) {
  return strcasecmp(left.c_str(), right) == 0;
}

std::string tables_in(const Library& library) {
  std::string text;
  for (const auto& [version, called] : library.net_tables) {
    text += (text.empty() ? "only v" : ", v") + std::to_string(version);
  }
  return text.empty() ? "none at all" : text;
}

// What NCCL does with a library that it could open: it looks for the newest table it knows,
// compares the name in it with NCCL_NET, and calls init and devices.
void judge(const NcclRules& rules, const Library& library, const Request& request, Probe* probe,
           Attempt* attempt) {
  attempt->table = library.newest_table_within(rules.oldest_table, rules.newest_table);
  if (attempt->table == 0) {
    attempt->verdict = Verdict::kNoTable;
    attempt->detail = "no table from ncclNetPlugin_v" + std::to_string(rules.oldest_table) +
                      " to _v" + std::to_string(rules.newest_table) + ", but " + tables_in(library);
    return;
  }
  attempt->called = library.net_tables.at(attempt->table);
  // NCCL compares without regard to case. An empty NCCL_NET is compared, too, and matches no name.
  if (request.net && !same_name(attempt->called, request.net->c_str())) {
    attempt->verdict = Verdict::kOtherNetWanted;
    attempt->detail =
        "it calls itself " + attempt->called + ", and NCCL_NET=" + *request.net + " is wanted";
    return;
  }
  attempt->verdict = Verdict::kUsed;
  // A plugin with an older table is not ours, and its devices are taken for granted.
  if (attempt->table < tools::NetTable::kOldest) return;
  const DeviceQuery& answer = probe->query(library.name, attempt->table);
  if (answer.error.empty() && !answer.devices.empty()) return;
  attempt->verdict = Verdict::kNoDevices;
  attempt->detail = answer.error.empty() ? "it reports no devices" : answer.error;
  if (!answer.warnings.empty()) {
    attempt->detail += ": " + answer.warnings.front();
  } else if (!answer.messages.empty()) {
    attempt->detail += ": " + answer.messages.back();
  }
}

// The first name that opens decides, also when it is of no use: NCCL does not try the second then.
void try_entry(const NcclRules& rules, const std::string& entry, const Request& request,
               Probe* probe, std::vector<Attempt>* attempts) {
  for (const std::string& name : dlopen_names(rules, entry)) {
    Attempt& attempt = attempts->emplace_back(Attempt{entry, name});
    const Library& library = probe->open(name);
    if (library.opened()) return judge(rules, library, request, probe, &attempt);
    attempt.verdict = library.missing ? Verdict::kNotFound : Verdict::kNotLoadable;
    attempt.detail = library.error;
  }
}

}  // namespace

Request request_from_environment() {
  Request request{variable("NCCL_NET_PLUGIN"), variable("NCCL_NET"), std::nullopt};
  // NCCL takes the start of the text as a number (strtoll), and an empty one as not set.
  const auto count = variable("NCCL_NET_PLUGIN_REF_COUNT");
  if (count && !count->empty()) request.reference_count = std::atoi(count->c_str());
  return request;
}

const Attempt* Resolution::used() const {
  const auto used = std::ranges::find(attempts, Verdict::kUsed, &Attempt::verdict);
  return used != attempts.end() ? &*used : nullptr;
}

bool LoadingReport::usable() const {
  return std::ranges::count(resolutions, Outcome::kSlime, &Resolution::outcome) > 0;
}

Resolution resolve(const NcclRules& rules, const Request& request, Probe* probe) {
  tools::Entries entries = entries_of(rules, request.plugin);
  Resolution resolution{&rules, {}, std::move(entries.ignored)};
  for (const std::string& entry : entries.names) {
    // From 2.27 on an entry of no use leads to the next. The first that is of use ends the list.
    if (resolution.used() != nullptr) {
      resolution.attempts.push_back({entry, entry, Verdict::kNotReached});
    } else {
      try_entry(rules, entry, request, probe, &resolution.attempts);
    }
  }
  const auto& net = request.net;
  if (const Attempt* const used = resolution.used()) {
    resolution.outcome =
        same_name(used->called, kPluginName) ? Outcome::kSlime : Outcome::kOtherPlugin;
    // Without an external plugin NCCL_NET must name one of NCCL's own transports.
  } else if (net && !same_name(*net, "IB") && !same_name(*net, "Socket")) {
    resolution.outcome = Outcome::kFailure;
  }
  return resolution;
}

}  // namespace slime::info
