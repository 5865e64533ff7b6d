#include "tools/info/attempt_words.h"
#include "tools/info/columns.h"
#include "tools/info/print.h"

namespace slime::info {
namespace {

std::string quoted(const std::optional<std::string>& value) {
  if (!value) return "not set";
  return value->empty() ? "empty" : "\"" + *value + "\"";
}

void print_question(const LoadingReport& loading, FILE* out) {
  if (loading.nccl) {
    const bool from_file = loading.nccl_source.find('/') != std::string::npos;
    fprintf(out, "NCCL %s (%s)\n", to_string(*loading.nccl).c_str(),
            from_file ? loading.nccl_source.c_str() : "as told by --nccl");
    if (is_newer_than_known(*loading.nccl)) {
      fprintf(out, "  newer than %s, the newest whose rules are known here; taken for that one\n",
              to_string(newest_known()).c_str());
    }
  } else {
    fprintf(out, "NCCL: all releases%s\n",
            loading.nccl_source.empty() ? "; no libnccl.so.2 was found (--nccl names yours)" : "");
  }
  const Request& request = loading.request;
  fprintf(out, "  NCCL_NET_PLUGIN %s%s, NCCL_NET %s\n", quoted(request.plugin).c_str(),
          request.plugin ? (" (" + loading.plugin_source + ")").c_str() : "",
          quoted(request.net).c_str());
}

std::string tables_of(const Library& library) {
  if (library.net_tables.empty()) return "no ncclNetPlugin table";
  std::string text = library.net_tables.rbegin()->second + ", net";
  for (const auto& [version, called] : library.net_tables) text += " v" + std::to_string(version);
  if (!library.collnet_tables.empty()) text += ", CollNet";
  for (const int version : library.collnet_tables) text += " v" + std::to_string(version);
  if (!library.tuner_tables.empty()) text += ", tuner";
  for (const int version : library.tuner_tables) text += " v" + std::to_string(version);
  return text;
}

void print_libraries(const LoadingReport& loading, FILE* out) {
  fprintf(out, "\nFiles\n");
  Columns columns;
  for (const Library& library : loading.libraries) {
    const std::string name = library.name.empty() ? "the program itself" : library.name;
    if (library.opened) {
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

std::string attempts_of(const Resolution& resolution) {
  std::string text;
  for (const Attempt& attempt : resolution.attempts) {
    if (attempt.verdict == Verdict::kNotReached) continue;
    text += (text.empty() ? "" : ", then ") + shown_name(attempt);
  }
  return text.empty() ? "nothing" : text;
}

std::string result_of(const Resolution& resolution) {
  const Attempt* const used = resolution.used();
  if (used == nullptr) return outcome_words(resolution.outcome);
  return used->called + " through ncclNetPlugin_v" + std::to_string(used->table);
}

void print_resolutions(const LoadingReport& loading, FILE* out) {
  fprintf(out, "\nWhat NCCL does\n");
  Columns columns;
  columns.add({"NCCL", "opens", "uses"});
  for (const Resolution& resolution : loading.resolutions) {
    const std::string release =
        loading.nccl ? to_string(*loading.nccl) : to_string(*resolution.era);
    columns.add({release, attempts_of(resolution), result_of(resolution)});
  }
  columns.print("  ", out);
}

void print_findings(const char* title, const std::vector<Finding>& findings, size_t eras,
                    FILE* out) {
  if (findings.empty()) return;
  fprintf(out, "\n%s\n", title);
  for (const Finding& finding : findings) {
    const bool everywhere = finding.eras.size() == eras;
    fprintf(out, "  - %s%s%s\n", everywhere ? "" : ("NCCL " + to_string(finding.eras)).c_str(),
            everywhere ? "" : ": ", finding.text.c_str());
  }
}

}  // namespace

const char* outcome_words(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSlime:
      return "this plugin";
    case Outcome::kOtherPlugin:
      return "another plugin";
    case Outcome::kInternal:
      return "NCCL's own transports";
    case Outcome::kFailure:
      return "nothing: NCCL fails";
  }
  return "";
}

void print_loading(const LoadingReport& loading, FILE* out) {
  print_question(loading, out);
  print_libraries(loading, out);
  print_resolutions(loading, out);
  const size_t eras = loading.resolutions.size();
  print_findings(loading.usable ? "Not everywhere" : "Why not", loading.advice.problems, eras, out);
  print_findings("Good to know", loading.advice.hints, eras, out);
  if (loading.advice.commands.empty()) return;
  fprintf(out, "\nTo use libnet-slime\n");
  for (const std::string& command : loading.advice.commands)
    fprintf(out, "  %s\n", command.c_str());
}

}  // namespace slime::info
