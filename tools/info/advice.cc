// The resolutions of loading.cc in plain words: problems, hints, and commands that help.
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "tools/info/loading.h"

namespace slime::info {
namespace {

constexpr char kWordForm[] = "libnccl-net-slime.so";  // NCCL_NET_PLUGIN=slime, in every release

// What parts of dlerror()'s sentence mean.
constexpr struct {
  const char *part, *meaning;
} kLinkerErrors[] = {
    {"wrong ELF class", "it is for another kind of processor"},
    {"invalid ELF header", "it is no shared library"},
    {"file too short", "it is empty or damaged"},
    {"Permission denied", "its permissions, or those of a directory above, forbid it"},
    {"GLIBC", "it was built on a newer system; build it on this machine"},
    {"undefined symbol", "it was linked wrongly, or against another version of a library"},
    {"No such file", "a library that it needs is missing; ldd shows which"},
};

std::string explain_linker_error(const std::string& error) {
  for (const auto& [part, meaning] : kLinkerErrors) {
    if (error.find(part) != std::string::npos) return std::string(" (") + meaning + ")";
  }
  return "";
}

// Why this attempt came to nothing; empty for one that did not, or that was not made.
std::string describe_failure(const Attempt& attempt, const Request& request) {
  const std::string name = attempt.shown_name();
  const bool is_path = name.find('/') != std::string::npos;
  switch (attempt.verdict) {
    case Verdict::kUsed:
    case Verdict::kNotReached:
      return "";
    case Verdict::kNotFound:
      return "there is no " + name +
             (is_path ? "" : " in LD_LIBRARY_PATH or the system's library directories");
    case Verdict::kNotLoadable:
      return name + " cannot be loaded" + explain_linker_error(attempt.detail) + ": " +
             attempt.detail;
    case Verdict::kNoTable:
      if (attempt.name.empty()) {
        return "'" + attempt.entry +
               "' is the start of STATIC_PLUGIN: NCCL takes the program itself for the plugin; use "
               "another name";
      }
      return name + " is loaded and dropped again: it has " + attempt.detail;
    case Verdict::kNoDevices:
      return name + " is loaded, but " + attempt.detail + "; see 'Devices' and 'Settings'";
    case Verdict::kOtherNetWanted:
      return name + " is loaded and not used: " + attempt.detail +
             (request.net->empty() ? ", which is no name at all; unset NCCL_NET" : "");
  }
  return "";
}

// What is wrong with the value of NCCL_NET_PLUGIN as such, before any file is looked at.
std::string describe_value(const NcclRules& rules, const std::optional<std::string>& plugin) {
  const std::string& value = plugin.value_or("");
  if (!plugin || (value.empty() && !rules.has(tools::kList))) {
    return "NCCL_NET_PLUGIN is not set, so NCCL looks for libnccl-net.so and nothing else";
  }
  if (value.empty()) {
    return "NCCL_NET_PLUGIN is set to an empty value, which means no plugin; unset it, or name one";
  }
  if (means_no_plugin(rules, value)) {
    return "NCCL_NET_PLUGIN=" + value + " means no plugin";
  }
  if (!rules.has(tools::kList) && value.find(',') != std::string::npos) {
    return "this NCCL takes no list: the commas are part of one name";
  }
  for (const std::string& entry : entries_of(rules, plugin).names) {
    if (takes_entry(rules, entry)) continue;
    const bool is_path = entry.find('/') != std::string::npos;
    return "this NCCL takes no " + std::string(is_path ? "path" : "file name") +
           ": it looks for libnccl-net-" + entry + ".so; NCCL_NET_PLUGIN=slime works everywhere";
  }
  return "";
}

// Findings with the same text are one finding of several releases.
void add(std::vector<Finding>* findings, const NcclRules& rules, const std::string& text) {
  if (text.empty()) return;
  auto found = std::ranges::find(*findings, text, &Finding::text);
  if (found == findings->end()) found = findings->insert(found, {text, {}});
  found->releases.push_back(&rules);
}

// Why this release does not use our plugin: the value, then each attempt, then what NCCL does
// instead.
void add_problems(const Resolution& resolution, LoadingReport* report) {
  const auto add_problem = [&](const std::string& text) {
    add(&report->problems, *resolution.rules, text);
  };
  const Request& request = report->request;
  const std::string wrong_value = describe_value(*resolution.rules, request.plugin);
  add_problem(wrong_value);
  for (const Attempt& attempt : resolution.attempts) {
    // A missing file is no news if the value is wrong, or NCCL's second name for the entry is
    // there.
    const auto is_other_name = [&attempt](const Attempt& other) {
      return other.entry == attempt.entry && other.name != attempt.name &&
             other.verdict != Verdict::kNotFound;
    };
    const bool expected = (!wrong_value.empty() && request.plugin) ||
                          std::ranges::any_of(resolution.attempts, is_other_name);
    if (attempt.verdict == Verdict::kNotFound && expected) continue;
    add_problem(describe_failure(attempt, request));
  }
  if (resolution.outcome == Outcome::kFailure) {
    add_problem("NCCL_NET=" + *request.net +
                " then matches no network: ncclCommInitRank fails with ncclInvalidUsage");
  } else if (resolution.outcome == Outcome::kInternal) {
    add_problem(
        "NCCL then uses its own InfiniBand or socket transport, and says so only with "
        "NCCL_DEBUG=INFO");
  } else {
    const Attempt& used = *resolution.used();
    add_problem("NCCL uses another plugin, " + used.shown_name() + ", which calls itself " +
                used.called);
  }
}

// What can go wrong later, although the plugin is used now.
void add_hints(const Resolution& resolution, LoadingReport* report) {
  const NcclRules& rules = *resolution.rules;
  const Request& request = report->request;
  for (const std::string& ignored : resolution.ignored) add(&report->hints, rules, ignored);
  const Attempt* const used = resolution.used();
  if (used == nullptr) return;
  if (rules.forgets_name(request.reference_count) && !used->entry.empty() &&
      used->entry != tools::kDefaultPlugin) {
    add(&report->hints, rules,
        "set NCCL_NET_PLUGIN_REF_COUNT=1: NCCL 2.28.3 to 2.29.7 (and 2.27 with a count of 0) "
        "unload the plugin with the last communicator and forget its name; the next communicator "
        "silently gets another transport");
  }
  if (!request.net && resolution.outcome == Outcome::kSlime) {
    add(&report->hints, rules,
        "set NCCL_NET=SLIME to make NCCL stop with an error, rather than take another transport "
        "silently, when the plugin cannot be used");
  }
}

// Quoted for sh(1) where it has to be.
std::string shell_word(const std::string& text) {
  const bool plain = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("/._-+,@%:", c) != nullptr;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Commands after which NCCL finds kWordForm.
void add_file_commands(std::vector<std::string>* commands) {
  const std::string directory = slime_directory();
  if (directory.empty()) {
    commands->push_back("make install PREFIX=/opt/slime     # in a checkout of libnet-slime");
    commands->push_back("export LD_LIBRARY_PATH=/opt/slime/lib:$LD_LIBRARY_PATH");
    return;
  }
  const auto link = std::filesystem::path(directory) / kWordForm;
  std::error_code ignored;
  if (!std::filesystem::exists(link, ignored)) {
    commands->push_back("ln -s libnet-slime.so " + shell_word(link));
  }
  if (std::ranges::count(library_path(), directory) == 0) {
    commands->push_back("export LD_LIBRARY_PATH=" + shell_word(directory) +
                        "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
  }
}

enum class Remedy : uint8_t { kValue, kNet, kNone };

// Which variable to change. Without devices neither another name nor another NCCL_NET helps.
Remedy remedy_for(const Resolution& resolution) {
  Remedy remedy = Remedy::kValue;
  for (const Attempt& attempt : resolution.attempts) {
    if (strcasecmp(attempt.called.c_str(), kPluginName) != 0) continue;
    if (attempt.verdict == Verdict::kOtherNetWanted) return Remedy::kNet;
    if (attempt.verdict == Verdict::kNoDevices) remedy = Remedy::kNone;
  }
  return remedy;
}

}  // namespace

void advise(LoadingReport* report, Probe* probe) {
  const Request& request = report->request;
  bool wrong_value = false, wrong_net = false;
  for (const Resolution& resolution : report->resolutions) {
    add_hints(resolution, report);
    if (resolution.outcome == Outcome::kSlime) continue;
    add_problems(resolution, report);
    const Remedy remedy = remedy_for(resolution);
    wrong_value |= remedy == Remedy::kValue;
    wrong_net |= remedy == Remedy::kNet;
  }
  // The word "slime" works in every release, so that is what the commands set.
  if (wrong_value) {
    if (!probe->open(kWordForm).opened()) add_file_commands(&report->commands);
    if (request.plugin.value_or("") != "slime") {
      report->commands.emplace_back("export NCCL_NET_PLUGIN=slime");
    }
    wrong_net |= request.net && strcasecmp(request.net->c_str(), kPluginName) != 0;
  }
  if (wrong_net) report->commands.emplace_back("export NCCL_NET=SLIME");
}

}  // namespace slime::info
