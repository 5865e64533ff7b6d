// What NCCL does with the environment as it is: every name that it tries, what comes of each, and
// which network it uses in the end. Then, for people: what keeps NCCL from using the plugin, and
// the commands that change it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/info/probe.h"

namespace slime::info {

inline constexpr char kPluginName[] = "SLIME";  // in our tables

struct Request {
  std::optional<std::string> plugin;   // NCCL_NET_PLUGIN; nullopt: not set
  std::optional<std::string> net;      // NCCL_NET
  std::optional<int> reference_count;  // NCCL_NET_PLUGIN_REF_COUNT
};
Request request_from_environment();

enum class Verdict : uint8_t {
  kUsed,
  kNotFound,        // no such file
  kNotLoadable,     // a file, but dlopen refuses it
  kNoTable,         // no ncclNetPlugin_v<n> that this NCCL looks for: the whole library is dropped
  kNoDevices,       // init or devices fails, or there are none
  kOtherNetWanted,  // NCCL_NET names another one
  kNotReached,      // an entry before it is used
};

struct Attempt {
  std::string entry;  // of NCCL_NET_PLUGIN; empty: the default
  std::string name;   // what dlopen is given; empty: NULL, the program itself
  Verdict verdict = Verdict::kNotFound;
  int table = 0;
  std::string called = {};  // the name in the table
  std::string detail = {};  // why not

  std::string shown_name() const { return name.empty() ? "the program itself" : name; }
};

enum class Outcome : uint8_t {
  kSlime,        // this plugin
  kOtherPlugin,  // another external plugin
  kInternal,     // NCCL's own InfiniBand or socket transport, silently
  kFailure,      // ncclCommInit fails, because NCCL_NET asks for what is not there
};

struct Resolution {
  const NcclRules* rules = nullptr;
  std::vector<Attempt> attempts;
  std::vector<std::string> ignored;  // entries beyond NCCL's limits
  Outcome outcome = Outcome::kInternal;

  const Attempt* used() const;  // nullptr: no external plugin
};
Resolution resolve(const NcclRules& rules, const Request& request, Probe* probe);

struct Finding {
  std::string text;
  std::vector<const NcclRules*> releases;  // where it holds, oldest first
};

struct LoadingReport {
  Request request;
  std::string plugin_source;  // "environment", a file, "--plugin" or "not set"
  KnownNccl nccl;
  std::vector<Resolution> resolutions;  // the one of `nccl`, else all releases that could
  std::vector<Library> libraries;       // all that were opened or looked for
  std::vector<Finding> problems;        // they keep NCCL from using the plugin
  std::vector<Finding> hints;           // it would work, but
  std::vector<std::string> commands;    // for a shell; they make it work

  bool usable() const;  // in one release at least
};

// Fills problems, hints and commands from the resolutions.
void advise(LoadingReport* report, Probe* probe);

}  // namespace slime::info
