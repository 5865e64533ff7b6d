#include "tools/info/advice.h"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "tools/info/attempt_words.h"
#include "tools/info/search_path.h"

namespace slime::info {
namespace {

constexpr char kWordForm[] = "libnccl-net-slime.so";  // NCCL_NET_PLUGIN=slime, in every release

void add(std::vector<Finding>* findings, const Era& era, const std::string& text) {
  auto found = std::find_if(findings->begin(), findings->end(),
                            [&](const Finding& finding) { return finding.text == text; });
  if (found == findings->end()) found = findings->insert(found, {text, {}});
  found->eras.push_back(&era);
}

// NCCL tries a second name for the same entry, and that one was there.
bool was_found_later(const Resolution& resolution, const Attempt& missing) {
  return std::any_of(resolution.attempts.begin(), resolution.attempts.end(),
                     [&](const Attempt& attempt) {
                       return attempt.entry == missing.entry && attempt.name != missing.name &&
                              attempt.verdict != Verdict::kNotFound;
                     });
}

void add_problems(const Resolution& resolution, const Request& request, Advice* advice) {
  const Era& era = *resolution.era;
  const std::string whole = words_for_value(era, request);
  if (!whole.empty()) add(&advice->problems, era, whole);
  for (const Attempt& attempt : resolution.attempts) {
    const bool expected =
        (!whole.empty() && request.plugin) || was_found_later(resolution, attempt);
    if (attempt.verdict == Verdict::kNotFound && expected) continue;
    const std::string text = words_for(attempt, request);
    if (!text.empty()) add(&advice->problems, era, text);
  }
  if (resolution.outcome == Outcome::kFailure) {
    add(&advice->problems, era,
        "NCCL_NET=" + *request.net +
            " then matches no network: ncclCommInitRank fails with "
            "ncclInvalidUsage");
  } else if (resolution.outcome == Outcome::kInternal) {
    add(&advice->problems, era,
        "NCCL then uses its own InfiniBand or socket transport, and says so only with "
        "NCCL_DEBUG=INFO");
  } else {
    const Attempt& used = *resolution.used();
    add(&advice->problems, era,
        "NCCL uses another plugin, " + shown_name(used) + ", which calls itself " + used.called);
  }
}

void add_hints(const Resolution& resolution, const Request& request, Advice* advice) {
  const Era& era = *resolution.era;
  for (const std::string& ignored : resolution.ignored) add(&advice->hints, era, ignored);
  const Attempt* const used = resolution.used();
  if (used == nullptr) return;
  if (forgets_name(era, request.reference_count) && !used->entry.empty() &&
      used->entry != "libnccl-net.so") {
    add(&advice->hints, era,
        "set NCCL_NET_PLUGIN_REF_COUNT=1: NCCL 2.28.3 to 2.29.7 (and 2.27 with a count of 0) "
        "unload the plugin with the last communicator and forget its name; the next communicator "
        "silently gets another transport");
  }
  if (!request.net && resolution.outcome == Outcome::kSlime) {
    add(&advice->hints, era,
        "set NCCL_NET=SLIME to make NCCL stop with an error, rather than take another transport "
        "silently, when the plugin cannot be used");
  }
}

std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("/._-+,@%:", c) != nullptr;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void add_file_commands(const Library& wanted, std::vector<std::string>* commands) {
  if (wanted.opened) return;
  const std::string directory = slime_directory();
  if (directory.empty()) {
    commands->push_back("make install PREFIX=/opt/slime     # in a checkout of libnet-slime");
    commands->push_back("export LD_LIBRARY_PATH=/opt/slime/lib:$LD_LIBRARY_PATH");
    return;
  }
  if (!exists(join(directory, kWordForm))) {
    commands->push_back("ln -s libnet-slime.so " + shell_word(join(directory, kWordForm)));
  }
  const auto listed = library_path();
  if (std::find(listed.begin(), listed.end(), directory) == listed.end()) {
    commands->push_back("export LD_LIBRARY_PATH=" + shell_word(directory) +
                        "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
  }
}

enum class Remedy { kValue, kNet, kNone };

// Without devices neither another name nor another NCCL_NET helps.
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

Advice advise(const std::vector<Resolution>& resolutions, Resolver* resolver) {
  Advice advice;
  const Request& request = resolver->request();
  bool wrong_value = false, wrong_net = false;
  for (const Resolution& resolution : resolutions) {
    add_hints(resolution, request, &advice);
    if (resolution.outcome == Outcome::kSlime) continue;
    add_problems(resolution, request, &advice);
    const Remedy remedy = remedy_for(resolution);
    wrong_value |= remedy == Remedy::kValue;
    wrong_net |= remedy == Remedy::kNet;
  }
  if (wrong_value) {
    add_file_commands(resolver->libraries().open(kWordForm), &advice.commands);
    if (request.plugin.value_or("") != "slime") {
      advice.commands.emplace_back("export NCCL_NET_PLUGIN=slime");
    }
    wrong_net |= request.net && strcasecmp(request.net->c_str(), kPluginName) != 0;
  }
  if (wrong_net) advice.commands.emplace_back("export NCCL_NET=SLIME");
  return advice;
}

}  // namespace slime::info
