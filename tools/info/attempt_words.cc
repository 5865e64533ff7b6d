#include "tools/info/attempt_words.h"

#include <strings.h>

#include <array>

namespace slime::info {
namespace {

struct Pattern {
  const char* part;  // of what dlerror() says
  const char* words;
};

constexpr std::array kLinkerWords = {
    Pattern{"wrong ELF class", "it is for another kind of processor"},
    Pattern{"invalid ELF header", "it is no shared library"},
    Pattern{"file too short", "it is empty or damaged"},
    Pattern{"Permission denied", "its permissions, or those of a directory above, forbid it"},
    Pattern{"GLIBC", "it was built on a newer system; build it on this machine"},
    Pattern{"undefined symbol", "it was linked wrongly, or against another version of a library"},
    Pattern{"No such file", "a library that it needs is missing; ldd shows which"},
};

std::string linker_words(const std::string& error) {
  for (const Pattern& pattern : kLinkerWords) {
    if (error.find(pattern.part) != std::string::npos)
      return std::string(" (") + pattern.words + ")";
  }
  return "";
}

std::string places(const std::string& name) {
  return name.find('/') == std::string::npos
             ? " in LD_LIBRARY_PATH or the system's library directories"
             : "";
}

}  // namespace

std::string shown_name(const Attempt& attempt) {
  return attempt.name.empty() ? "the program itself" : attempt.name;
}

std::string short_verdict(const Attempt& attempt, const Library& library) {
  switch (attempt.verdict) {
    case Verdict::kUsed:
      return library.path;
    case Verdict::kNotFound:
      return "not found";
    case Verdict::kNotLoadable:
      return "cannot be loaded";
    case Verdict::kNoTable:
      return "has no fitting table";
    case Verdict::kNoDevices:
      return "has no devices";
    case Verdict::kOtherNetWanted:
      return "is not NCCL_NET";
    case Verdict::kNotReached:
      return "not reached";
  }
  return "";
}

std::string words_for(const Attempt& attempt, const Request& request) {
  const std::string name = shown_name(attempt);
  switch (attempt.verdict) {
    case Verdict::kUsed:
    case Verdict::kNotReached:
      return "";
    case Verdict::kNotFound:
      return "there is no " + name + places(attempt.name);
    case Verdict::kNotLoadable:
      return name + " cannot be loaded" + linker_words(attempt.detail) + ": " + attempt.detail;
    case Verdict::kNoTable:
      if (attempt.name.empty()) {
        return "'" + attempt.entry +
               "' is the start of STATIC_PLUGIN: NCCL takes the program itself "
               "for the plugin; use another name";
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

std::string words_for_value(const Era& era, const Request& request) {
  if (!request.plugin || (request.plugin->empty() && !era.list)) {
    return "NCCL_NET_PLUGIN is not set, so NCCL looks for libnccl-net.so and nothing else";
  }
  const std::string& value = *request.plugin;
  if (value.empty() && era.list) {
    return "NCCL_NET_PLUGIN is set to an empty value, which means no plugin; unset it, or name one";
  }
  if (era.none && strcasecmp(value.c_str(), "none") == 0) {
    return "NCCL_NET_PLUGIN=" + value + " means no plugin";
  }
  if (!era.list && value.find(',') != std::string::npos) {
    return "this NCCL takes no list: the commas are part of one name";
  }
  const bool path = value.find('/') != std::string::npos;
  const bool library = value.starts_with("lib") && value.ends_with(".so");
  const bool prefixed = era.naming == Naming::kPrefixed && (path || library);
  if (prefixed || (era.naming == Naming::kLibraryElsePrefixed && path)) {
    return "this NCCL takes no " + std::string(path ? "path" : "file name") +
           ": it looks for libnccl-net-" + value + ".so; NCCL_NET_PLUGIN=slime works everywhere";
  }
  return "";
}

}  // namespace slime::info
