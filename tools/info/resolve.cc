#include "tools/info/resolve.h"

#include <strings.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace slime::info {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

bool same_name(const std::string& left, const char* right) {
  return strcasecmp(left.c_str(), right) == 0;
}

std::string tables_in(const Library& library) {
  std::string text;
  for (const auto& [version, called] : library.net_tables) {
    text += (text.empty() ? "v" : ", v") + std::to_string(version);
  }
  return text.empty() ? "none at all" : "only " + text;
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
  for (const Attempt& attempt : attempts) {
    if (attempt.verdict == Verdict::kUsed) return &attempt;
  }
  return nullptr;
}

// NCCL compares without regard to case, and an empty NCCL_NET with every name: it matches none.
bool Resolver::wanted(const std::string& called) const {
  return !request_.net || same_name(called, request_.net->c_str());
}

const DeviceQuery& Resolver::query(const std::string& library, int table) {
  const auto key = std::make_pair(library, table);
  const auto found = queries_.find(key);
  if (found != queries_.end()) return found->second;
  return queries_.emplace(key, query_devices(library, table)).first->second;
}

void Resolver::judge(const Era& era, const Library& library, Attempt* attempt) {
  attempt->table = library.newest_table_within(era.oldest_table, era.newest_table);
  if (attempt->table == 0) {
    attempt->verdict = Verdict::kNoTable;
    attempt->detail = "no table from ncclNetPlugin_v" + std::to_string(era.oldest_table) +
                      " to _v" + std::to_string(era.newest_table) + ", but " + tables_in(library);
    return;
  }
  attempt->called = library.net_tables.at(attempt->table);
  if (!wanted(attempt->called)) {
    attempt->verdict = Verdict::kOtherNetWanted;
    attempt->detail =
        "it calls itself " + attempt->called + ", and NCCL_NET=" + *request_.net + " is wanted";
    return;
  }
  attempt->verdict = Verdict::kUsed;
  if (!can_query(attempt->table)) return;  // older than what we can call; not ours in any case
  const DeviceQuery& answer = query(library.name, attempt->table);
  if (answer.error.empty() && answer.count() > 0) return;
  attempt->verdict = Verdict::kNoDevices;
  attempt->detail = answer.error.empty() ? "it reports no devices" : answer.error;
  if (!answer.warnings.empty()) {
    attempt->detail += ": " + answer.warnings.front();
  } else if (!answer.messages.empty()) {
    attempt->detail += ": " + answer.messages.back();
  }
}

// The first name that opens decides, also when it is of no use. Those before go to `before`.
Attempt Resolver::try_entry(const Era& era, const std::string& entry,
                            std::vector<Attempt>* before) {
  Attempt attempt;
  for (const std::string& name : names_of(era, entry)) {
    if (!attempt.entry.empty()) before->push_back(attempt);
    attempt = Attempt();
    attempt.entry = entry;
    const bool program = is_static_prefix(era, name);
    attempt.name = program ? "" : name;
    const Library& library = libraries_.open(attempt.name);
    if (library.opened) {
      judge(era, library, &attempt);
      return attempt;
    }
    attempt.verdict = library.missing ? Verdict::kNotFound : Verdict::kNotLoadable;
    attempt.detail = library.error;
  }
  return attempt;
}

Resolution Resolver::resolve(const Era& era) {
  Resolution resolution;
  resolution.era = &era;
  const Entries entries = entries_of(era, request_.plugin);
  resolution.ignored = entries.ignored;
  for (const std::string& entry : entries.names) {
    if (resolution.used() != nullptr) {
      Attempt rest;
      rest.entry = rest.name = entry;
      rest.verdict = Verdict::kNotReached;
      resolution.attempts.push_back(rest);
      continue;
    }
    Attempt attempt = try_entry(era, entry, &resolution.attempts);
    resolution.attempts.push_back(std::move(attempt));
  }
  const auto& net = request_.net;
  if (const Attempt* used = resolution.used()) {
    resolution.outcome =
        same_name(used->called, kPluginName) ? Outcome::kSlime : Outcome::kOtherPlugin;
  } else if (net && !same_name(*net, "IB") && !same_name(*net, "Socket")) {
    resolution.outcome = Outcome::kFailure;
  }
  return resolution;
}

}  // namespace slime::info
