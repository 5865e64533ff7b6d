// The report for people, section by section. Devices and the topology have files of their own.
#include <slime_version.h>

#include "tools/info/columns.h"
#include "tools/info/report.h"

namespace slime::info {
namespace {

std::string quoted(const std::optional<std::string>& value) {
  if (!value) return "not set";
  return value->empty() ? "empty" : "\"" + *value + "\"";
}

// Which NCCL is meant, and the variables that decide.
void print_question(const LoadingReport& loading, FILE* out) {
  if (loading.nccl.version) {
    const bool from_file = loading.nccl.source.find('/') != std::string::npos;
    fprintf(out, "NCCL %s (%s)\n", to_string(*loading.nccl.version).c_str(),
            from_file ? loading.nccl.source.c_str() : "as told by --nccl");
    if (*loading.nccl.version > tools::nccl_rules().back().last) {
      fprintf(out, "  newer than %s, the newest whose rules are known here; taken for that one\n",
              to_string(tools::kNewestKnown).c_str());
    }
  } else {
    fprintf(out, "NCCL: all releases%s\n",
            loading.nccl.source.empty() ? "; no libnccl.so.2 was found (--nccl names yours)" : "");
  }
  const Request& request = loading.request;
  fprintf(out, "  NCCL_NET_PLUGIN %s%s, NCCL_NET %s\n", quoted(request.plugin).c_str(),
          request.plugin ? (" (" + loading.plugin_source + ")").c_str() : "",
          quoted(request.net).c_str());
}

// "SLIME, net v6 v7 v8, CollNet v6 v7 v8, tuner v2 v3"
std::string tables_of(const Library& library) {
  if (library.net_tables.empty()) return "no ncclNetPlugin table";
  std::string text = library.net_tables.rbegin()->second + ", net";
  for (const auto& [version, called] : library.net_tables) text += " v" + std::to_string(version);
  const auto append = [&text](const char* kind, const std::vector<int>& versions) {
    if (!versions.empty()) text += kind;
    for (const int version : versions) text += " v" + std::to_string(version);
  };
  append(", CollNet", library.collnet_tables);
  append(", tuner", library.tuner_tables);
  return text;
}

// Name, path and what the link points to, how it was found, and tables; or why not.
void print_libraries(const LoadingReport& loading, FILE* out) {
  fprintf(out, "\nFiles\n");
  Columns columns;
  for (const Library& library : loading.libraries) {
    const std::string name = library.name.empty() ? "the program itself" : library.name;
    if (library.opened()) {
      const std::string target =
          library.real_path == library.path ? "" : " -> " + library.real_path;
      const std::string path = library.path.empty() ? "dlopen(NULL)" : library.path;
      columns.add({name, path + target, "(" + library.found_by + ")", tables_of(library)});
    } else {
      columns.add({name, library.missing ? "not found" : "cannot be loaded: " + library.error});
    }
  }
  columns.print("  ", out);
}

// "slime, then libnccl-net-slime.so"
std::string attempts_of(const Resolution& resolution) {
  std::string text;
  for (const Attempt& attempt : resolution.attempts) {
    if (attempt.verdict == Verdict::kNotReached) continue;
    text += (text.empty() ? "" : ", then ") + attempt.shown_name();
  }
  return text.empty() ? "nothing" : text;
}

std::string result_of(const Resolution& resolution) {
  if (const Attempt* const used = resolution.used()) {
    return used->called + " through ncclNetPlugin_v" + std::to_string(used->table);
  }
  return resolution.outcome == Outcome::kFailure ? "nothing: NCCL fails" : "NCCL's own transports";
}

void print_resolutions(const LoadingReport& loading, FILE* out) {
  fprintf(out, "\nWhat NCCL does\n");
  Columns columns;
  columns.add({"NCCL", "opens", "uses"});
  for (const Resolution& resolution : loading.resolutions) {
    columns.add({loading.nccl.version ? to_string(*loading.nccl.version)
                                      : release_names({&resolution.rules, 1}),
                 attempts_of(resolution), result_of(resolution)});
  }
  columns.print("  ", out);
}

// The releases of a finding are printed only if it does not hold in all of those in question.
void print_findings(const char* title, const std::vector<Finding>& findings, size_t releases,
                    FILE* out) {
  if (!findings.empty()) fprintf(out, "\n%s\n", title);
  for (const Finding& finding : findings) {
    const bool everywhere = finding.releases.size() == releases;
    const std::string where = everywhere ? "" : "NCCL " + release_names(finding.releases) + ": ";
    fprintf(out, "  - %s%s\n", where.c_str(), finding.text.c_str());
  }
}

void print_loading(const LoadingReport& loading, FILE* out) {
  print_question(loading, out);
  print_libraries(loading, out);
  print_resolutions(loading, out);
  const size_t releases = loading.resolutions.size();
  print_findings(loading.usable() ? "Not everywhere" : "Why not", loading.problems, releases, out);
  print_findings("Good to know", loading.hints, releases, out);
  if (!loading.commands.empty()) fprintf(out, "\nTo use libnet-slime\n");
  for (const std::string& command : loading.commands) fprintf(out, "  %s\n", command.c_str());
}

void print_settings(const SettingsReport& settings, bool with_help, FILE* out) {
  fprintf(out, "Settings%s\n", with_help ? "" : "  (--settings shows range and meaning)");
  for (const std::string& error : settings.errors) {
    fprintf(out, "  ERROR: %s: the plugin reports no devices\n", error.c_str());
  }
  for (const std::string& warning : settings.warnings) {
    fprintf(out, "  warning: %s\n", warning.c_str());
  }
  Columns columns;
  for (const SettingRow& row : settings.rows) {
    const std::string value = row.value.empty() ? "(empty)" : row.value;
    const std::string plain = row.default_value.empty() ? "(empty)" : row.default_value;
    if (!with_help) {
      columns.add({row.name, value, row.source});
      continue;
    }
    fprintf(out, "\n  %s = %s   (%s; default %s)\n", row.name.c_str(), value.c_str(),
            row.source.c_str(), plain.c_str());
    fprintf(out, "      %s\n      Accepted: %s.%s%s\n", row.help.c_str(), row.range.c_str(),
            row.fallback.empty() ? "" : " When not set: ", row.fallback.c_str());
  }
  columns.print("  ", out);
}

std::string describe_transport(const TransportState& state) {
  if (!state.exists) return state.reason;
  if (state.rails.empty()) return "no rail here: " + state.reason;
  std::string text = state.rails.size() == 1 ? "rail" : "rails";
  for (const std::string& rail : state.rails) text += " " + rail;
  return text;
}

void print_transports(const TransportsReport& report, FILE* out) {
  fprintf(out, "Transports, with NCCL_SLIME_TRANSPORTS=%s\n", report.variable.c_str());
  Columns columns;
  for (const TransportState& state : report.states) {
    columns.add({state.name, state.wanted ? "wanted" : "", describe_transport(state)});
  }
  columns.print("  ", out);
}

}  // namespace

void print_text(const Report& report, bool long_settings, FILE* out) {
  fprintf(out, "slime-info %s (commit %s)\n", SLIME_VERSION, SLIME_COMMIT);
  const auto section = [out](const auto& part, auto print) {
    if (!part) return;
    fputc('\n', out);
    print(*part, out);
  };
  section(report.loading, print_loading);
  section(report.devices, print_devices);
  section(report.transports, print_transports);
  section(report.topology, print_topology);
  section(report.settings, [long_settings](const SettingsReport& settings, FILE* to) {
    print_settings(settings, long_settings, to);
  });
}

}  // namespace slime::info
