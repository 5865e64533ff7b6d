// What NCCL of one era would do with the environment as it is: every name it tries, and the end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/info/device_query.h"
#include "tools/info/library.h"
#include "tools/info/nccl_rules.h"

namespace slime::info {

inline constexpr char kPluginName[] = "SLIME";  // in our tables

struct Request {
  std::optional<std::string> plugin;   // NCCL_NET_PLUGIN; nullopt: not set
  std::optional<std::string> net;      // NCCL_NET
  std::optional<int> reference_count;  // NCCL_NET_PLUGIN_REF_COUNT
};
Request request_from_environment();

enum class Verdict {
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
  std::string called;  // the name in the table
  std::string detail;  // why not
};

enum class Outcome {
  kSlime,        // this plugin
  kOtherPlugin,  // another external plugin
  kInternal,     // NCCL's own InfiniBand or socket transport, silently
  kFailure,      // ncclCommInit fails, because NCCL_NET asks for what is not there
};

struct Resolution {
  const Era* era = nullptr;
  std::vector<Attempt> attempts;
  std::vector<std::string> ignored;  // entries beyond NCCL's limits
  Outcome outcome = Outcome::kInternal;

  const Attempt* used() const;  // nullptr: no external plugin
};

// Asks the file system and the plugins themselves; each question once.
class Resolver {
 public:
  explicit Resolver(Request request) : request_(std::move(request)) {}

  Resolution resolve(const Era& era);
  const Request& request() const { return request_; }
  Libraries& libraries() { return libraries_; }
  const DeviceQuery& query(const std::string& library, int table);

 private:
  Attempt try_entry(const Era& era, const std::string& entry, std::vector<Attempt>* before);
  void judge(const Era& era, const Library& library, Attempt* attempt);
  bool wanted(const std::string& called) const;

  const Request request_;
  Libraries libraries_;
  std::map<std::pair<std::string, int>, DeviceQuery> queries_;
};

}  // namespace slime::info
