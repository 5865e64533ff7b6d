#include "tools/common/nccl_rules.h"

#include <strings.h>

#include <algorithm>
#include <climits>
#include <regex>
#include <sstream>
#include <string_view>

namespace slime::tools {
namespace {

// Of a list: src/plugin/net.cc, initPluginLibsOnceFunc.
constexpr size_t kMaxListed = 14;      // NCCL_NET_MAX_PLUGINS less two internal ones
constexpr size_t kMaxEntryName = 254;  // MAX_STR_LEN less the terminating byte

// Each row was read from the releases that its comment names, in github.com/NVIDIA/nccl. A row says
// only what differs for a user: releases between the named ones have the same code there.
using enum Values;
constexpr int kEnd = kLastPatch;
constexpr NcclRules kRules[] = {
    // Columns: first and last release; the values V for which NCCL calls dlopen(V), and those for
    // which it then calls dlopen("libnccl-net-V.so"); bytes of the longest name; oldest and newest
    // ncclNetPlugin_v<n>; features; default of NCCL_NET_PLUGIN_REF_COUNT where 0 loses the name.
    // v2.12.12-1 src/net.cc: ncclNetPluginInit, a buffer of 128 bytes
    {{2, 0, 0}, {2, 12, kEnd}, kNone, kAll, 127, 4, 5, 0, -1},
    // v2.13.4-1, v2.18.6-1 src/net.cc: the same with v6, the oldest table this plugin has
    {{2, 13, 0}, {2, 18, kEnd}, kNone, kAll, 127, 4, 6, 0, -1},
    // v2.19.4-1 src/net.cc
    {{2, 19, 0}, {2, 19, kEnd}, kNone, kAll, 127, 5, 7, 0, -1},
    // v2.20.5-1 src/net.cc
    {{2, 20, 0}, {2, 20, kEnd}, kNone, kAll, 127, 5, 8, 0, -1},
    // v2.21.5-1 src/net.cc: openNetPluginLib, a buffer of PATH_MAX bytes
    {{2, 21, 0}, {2, 21, kEnd}, kAll, kAll, PATH_MAX - 1, 5, 8, 0, -1},
    // v2.22.3-1, v2.23.4-1 src/net.cc: tryOpenLib compares with STATIC_PLUGIN
    {{2, 22, 0}, {2, 23, kEnd}, kAll, kAll, PATH_MAX - 1, 5, 8, kStaticPlugin, -1},
    // v2.24.3-1, v2.25.1-1 src/net.cc
    {{2, 24, 0}, {2, 25, kEnd}, kAll, kAll, PATH_MAX - 1, 5, 9, kStaticPlugin, -1},
    // v2.26.2-1 src/plugin/plugin_open.cc: a buffer of MAX_STR_LEN (255) bytes
    {{2, 26, 0}, {2, 26, kEnd}, kAll, kAll, 254, 6, 10, kStaticPlugin, -1},
    // v2.27.3-1 src/plugin/net.cc: initPluginLibsOnceFunc takes a list; plugin_open.cc: the names
    {{2, 27, 0}, {2, 27, 3}, kLibraries, kNoLibraries, 254, 6, 10, kStaticPlugin | kList, 1},
    // v2.27.5-1, v2.27.7-1 src/plugin/plugin_open.cc: a prefix for words only
    {{2, 27, 4}, {2, 27, kEnd}, kAll, kWords, 254, 6, 10, kStaticPlugin | kList, 1},
    // v2.28.3-1, v2.29.7-1 src/plugin/net.cc: "none"; the count is 0 by default
    {{2, 28, 0}, {2, 29, kEnd}, kAll, kWords, 254, 6, 11, kStaticPlugin | kList | kNoneWord, 0},
    // v2.30.3-1, v2.30.7-1 src/plugin/net.cc: unloading preserves the name
    {{2, 30, 0}, {2, 30, kEnd}, kAll, kWords, 254, 6, 12, kStaticPlugin | kList | kNoneWord, -1},
};

bool looks_like_library(std::string_view name) {
  return name.starts_with("lib") && name.ends_with(".so");
}

bool is_path(const std::string& name) { return name.find('/') != std::string::npos; }

bool is_among(Values values, const std::string& entry) {
  const bool library = looks_like_library(entry);
  switch (values) {
    case kNone:
    case kAll:
      return values == kAll;
    case kLibraries:
    case kNoLibraries:  // strlen("libX.so") is part of NCCL's test
      return (library && entry.size() >= 7) == (values == kLibraries);
    case kWords:
      return !library && !is_path(entry);
  }
  return false;
}

// strtok_r(3): no empty entries.
Entries split_list(const std::string& value) {
  Entries entries;
  std::istringstream list(value);
  for (std::string name; std::getline(list, name, ',');) {
    if (name.empty()) continue;
    if (entries.names.size() == kMaxListed) {
      entries.ignored.push_back(name + ": NCCL takes 14 names at most");
    } else if (name.size() > kMaxEntryName) {
      entries.ignored.push_back(name.substr(0, 32) + "...: longer than 254 characters");
    } else {
      entries.names.push_back(name);
    }
  }
  return entries;
}

// tryOpenLib: strncasecmp(name, "STATIC_PLUGIN", strlen(name)), so any prefix of the word fits.
bool is_static_plugin(std::string_view name) {
  constexpr std::string_view kWord = "STATIC_PLUGIN";
  return !name.empty() && name.size() <= kWord.size() &&
         strncasecmp(name.data(), kWord.data(), name.size()) == 0;
}

std::string series(const NcclVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

// "2.22 - 2.23", "2.27.4 and later 2.27"; with `to` the newest row of several, "2.28 and later".
std::string range_words(const NcclRules& from, const NcclRules& to) {
  if (to.last < kOldestUsable) return "before 2.13";
  const std::string first = from.first.patch == 0 ? series(from.first) : to_string(from.first);
  if (&from != &to && &to == &nccl_rules().back()) return first + " and later";
  if (&from == &to && from.first.patch != 0) return first + " and later " + series(from.first);
  const std::string last = to_string(to.last);
  return first == last ? first : first + " - " + last;
}

}  // namespace

Result<NcclVersion> parse_nccl_version(const std::string& text) {
  // At least two numbers of up to three digits; the third is optional.
  static const std::regex form(R"(0*(\d{1,3})\.0*(\d{1,3})(?:\.0*(\d{1,3}))?)");
  std::smatch parts;
  if (!std::regex_match(text, parts, form)) {
    return fail(make_error(Status::kConfig, 0,
                           "'%s' is no NCCL version; write it as in 2.20.5 or 2.28", text.c_str()));
  }
  const auto number = [&parts](size_t index) { return std::stoi(parts[index].str()); };
  if (number(1) != 2) {
    return fail(
        make_error(Status::kConfig, 0,
                   "NCCL %s is none that is known here: versions are 2.x, such as 2.20.5; a "
                   "newer 2.x is answered for as the newest that is known",
                   text.c_str()));
  }
  return NcclVersion{2, number(2), parts[3].matched ? number(3) : kLastPatch};
}

std::string to_string(const NcclVersion& version) {
  return series(version) + (version.patch == kLastPatch ? "" : "." + std::to_string(version.patch));
}

// nccl.h: NCCL_VERSION(X,Y,Z), with another scale up to 2.8.
NcclVersion version_from_code(int code) {
  const int scale = code >= 10000 ? 10000 : 1000;
  return {code / scale, code % scale / 100, code % 100};
}

std::span<const NcclRules> nccl_rules() { return kRules; }

const NcclRules& rules_of(const NcclVersion& version) {
  // The last row that begins at or before this version. What is older than all is of the first.
  const auto next = std::ranges::upper_bound(kRules, version, {}, &NcclRules::first);
  return next == std::begin(kRules) ? *next : *std::prev(next);
}

std::string release_names(std::span<const NcclRules* const> rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    const NcclRules& first = *rows[i];
    while (i + 1 < rows.size() && rows[i + 1] == rows[i] + 1) ++i;
    text += (text.empty() ? "" : ", ") + range_words(first, *rows[i]);
  }
  return text;
}

Entries entries_of(const NcclRules& rules, const std::optional<std::string>& value) {
  if (!value || (value->empty() && !rules.has(kList))) return {{""}, {}};
  if (!rules.has(kList)) return {{*value}, {}};
  if (means_no_plugin(rules, *value)) return {};
  return split_list(*value);
}

bool means_no_plugin(const NcclRules& rules, const std::string& value) {
  return rules.has(kNoneWord) && strcasecmp(value.c_str(), "none") == 0;
}

bool takes_entry(const NcclRules& rules, const std::string& entry) {
  return is_among(rules.plain, entry) || is_among(kWords, entry);
}

std::vector<std::string> dlopen_names(const NcclRules& rules, const std::string& entry) {
  if (entry.empty()) return {kDefaultPlugin};
  std::vector<std::string> names;
  if (is_among(rules.plain, entry)) names.push_back(entry);
  if (is_among(rules.prefixed, entry)) names.push_back("libnccl-net-" + entry + ".so");
  // NCCL writes the name into its buffer first, and compares what is left of it.
  for (std::string& name : names) {
    name.resize(std::min(name.size(), rules.name_size));
    if (rules.has(kStaticPlugin) && is_static_plugin(name)) name.clear();
  }
  return names;
}

}  // namespace slime::tools
