#include "tools/info/nccl_rules.h"

#include <strings.h>

#include <climits>
#include <cstring>

namespace slime::info {
namespace {

// Sources, all of NVIDIA/nccl: ncclNetPluginInit in src/net.cc (2.13 to 2.20), openNetPluginLib in
// src/net.cc (2.21 to 2.25), src/plugin/plugin_open.cc and src/plugin/net.cc (from 2.26).
constexpr size_t kShortBuffer = 127;
constexpr size_t kNameBuffer = 254;
constexpr size_t kPathBuffer = PATH_MAX - 1;

constexpr size_t kMaxListed = 14;  // NCCL_NET_MAX_PLUGINS less two internal ones
constexpr char kDefaultName[] = "libnccl-net.so";

std::vector<Era> make_eras() {
  using enum Naming;
  const auto era = [](NcclVersion first, NcclVersion last, Naming naming, size_t longest,
                      int newest_table, int oldest_table) {
    Era made{first, last, naming, longest};
    made.newest_table = newest_table;
    made.oldest_table = oldest_table;
    made.static_prefix = first >= NcclVersion{2, 22, 0};
    made.list = first >= NcclVersion{2, 27, 0};
    made.none = first >= NcclVersion{2, 28, 0};
    made.forgets_name = first >= NcclVersion{2, 27, 0} && first < NcclVersion{2, 30, 0};
    if (first < NcclVersion{2, 26, 0}) made.reference_count = -1;
    if (first.minor == 26 || first.minor == 27) made.reference_count = 1;
    return made;
  };
  const int end = kLastPatch;
  return {
      era({2, 0, 0}, {2, 12, end}, kPrefixed, kShortBuffer, 5, 4),
      era({2, 13, 0}, {2, 18, end}, kPrefixed, kShortBuffer, 6, 4),
      era({2, 19, 0}, {2, 19, end}, kPrefixed, kShortBuffer, 7, 5),
      era({2, 20, 0}, {2, 20, end}, kPrefixed, kShortBuffer, 8, 5),
      era({2, 21, 0}, {2, 21, end}, kPlainThenPrefixed, kPathBuffer, 8, 5),
      era({2, 22, 0}, {2, 23, end}, kPlainThenPrefixed, kPathBuffer, 8, 5),
      era({2, 24, 0}, {2, 25, end}, kPlainThenPrefixed, kPathBuffer, 9, 5),
      era({2, 26, 0}, {2, 26, end}, kPlainThenPrefixed, kNameBuffer, 10, 6),
      era({2, 27, 0}, {2, 27, 3}, kLibraryElsePrefixed, kNameBuffer, 10, 6),
      era({2, 27, 4}, {2, 27, end}, kPlainThenPrefixedWord, kNameBuffer, 10, 6),
      era({2, 28, 0}, {2, 29, end}, kPlainThenPrefixedWord, kNameBuffer, 11, 6),
      era({2, 30, 0}, {2, 30, end}, kPlainThenPrefixedWord, kNameBuffer, 12, 6),
  };
}

bool looks_like_library(std::string_view name) {
  return name.starts_with("lib") && name.ends_with(".so");
}

// strtok_r(3): no empty entries.
void split_list(const std::string& value, Entries* entries) {
  for (size_t start = 0; start < value.size();) {
    const size_t comma = std::min(value.find(',', start), value.size());
    const std::string name = value.substr(start, comma - start);
    start = comma + 1;
    if (name.empty()) continue;
    if (entries->names.size() == kMaxListed) {
      entries->ignored.push_back(name + ": NCCL takes 14 names at most");
    } else if (name.size() > kNameBuffer) {
      entries->ignored.push_back(name.substr(0, 32) + "...: longer than 254 characters");
    } else {
      entries->names.push_back(name);
    }
  }
}

std::string series(const NcclVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

std::string range_words(const Era& from, const Era& to) {
  if (to.last < oldest_usable()) return "before 2.13";
  const std::string first = from.first.patch == 0 ? series(from.first) : to_string(from.first);
  if (&from != &to && &to == &eras().back()) return first + " and later";
  if (&from == &to && from.first.patch != 0) return first + " and later " + series(from.first);
  const std::string last = to.last.patch == kLastPatch ? series(to.last) : to_string(to.last);
  return first == last ? first : first + " - " + last;
}

}  // namespace

const std::vector<Era>& eras() {
  static const std::vector<Era> table = make_eras();
  return table;
}

const Era& era_of(const NcclVersion& version) {
  const Era* found = &eras().front();
  for (const Era& era : eras()) {
    if (era.first <= version) found = &era;
  }
  return *found;
}

NcclVersion newest_known() { return {2, 30, 7}; }

NcclVersion oldest_usable() { return {2, 13, 0}; }

bool is_newer_than_known(const NcclVersion& version) { return version > eras().back().last; }

std::string to_string(const Era& era) { return range_words(era, era); }

std::string to_string(const std::vector<const Era*>& several) {
  std::string text;
  for (size_t i = 0; i < several.size();) {
    size_t last = i;
    while (last + 1 < several.size() && several[last + 1] == several[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + range_words(*several[i], *several[last]);
    i = last + 1;
  }
  return text;
}

bool forgets_name(const Era& era, std::optional<int> reference_count) {
  return era.forgets_name && reference_count.value_or(era.reference_count) == 0;
}

Entries entries_of(const Era& era, const std::optional<std::string>& value) {
  Entries entries;
  if (!value || (value->empty() && !era.list)) {
    entries.names.emplace_back();
  } else if (!era.list) {
    entries.names.push_back(*value);
  } else if (!era.none || strcasecmp(value->c_str(), "none") != 0) {
    split_list(*value, &entries);
  }
  return entries;
}

bool is_static_prefix(const Era& era, std::string_view name) {
  constexpr std::string_view kWord = "STATIC_PLUGIN";
  return era.static_prefix && !name.empty() && name.size() <= kWord.size() &&
         strncasecmp(name.data(), kWord.data(), name.size()) == 0;
}

std::vector<std::string> names_of(const Era& era, const std::string& entry) {
  if (entry.empty()) return {kDefaultName};
  const std::string prefixed = "libnccl-net-" + entry + ".so";
  const bool word = entry.find('/') == std::string::npos && !looks_like_library(entry);
  std::vector<std::string> names;
  switch (era.naming) {
    case Naming::kPrefixed:
      names = {prefixed};
      break;
    case Naming::kPlainThenPrefixed:
      names = {entry, prefixed};
      break;
    // strlen("libX.so") is part of the test: shorter ones get the prefix.
    case Naming::kLibraryElsePrefixed:
      names = {looks_like_library(entry) && entry.size() >= 7 ? entry : prefixed};
      break;
    case Naming::kPlainThenPrefixedWord:
      names = {entry};
      if (word) names.push_back(prefixed);
      break;
  }
  for (std::string& name : names) name.resize(std::min(name.size(), era.longest_name));
  return names;
}

}  // namespace slime::info
