// Questions that only foreign code can answer: which tables a plugin has, what devices it reports,
// which version an NCCL has. All of that code runs in child processes, because a library may crash,
// hang or change the process.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "settings/settings.h"
#include "tools/common/nccl_rules.h"

namespace slime::info {

using tools::NcclRules;
using tools::NcclVersion;
using tools::release_names;

// Calls `work` in a forked process and returns what it returned. The child's standard output goes
// to standard error, so that JSON on ours stays whole. `what` names the work in an error.
// The calling process must have one thread only.
Result<nlohmann::json> run_in_child(const std::function<nlohmann::json()>& work, uint64_t limit_ns,
                                    const std::string& what);

// A shared library as NCCL would open it.
struct Library {
  std::string name;                       // what dlopen was given; empty: the program itself
  bool missing = false;                   // there is no such file where the dynamic linker looks
  std::string path;                       // what the dynamic linker found
  std::string real_path;                  // the same without symbolic links
  std::string found_by;                   // "path", "LD_LIBRARY_PATH" or "system directories"
  std::string error;                      // dlerror(), or how the process ended that tried
  std::map<int, std::string> net_tables;  // n of ncclNetPlugin_v<n> -> name in the table
  std::vector<int> collnet_tables;        // n of ncclCollNetPlugin_v<n>
  std::vector<int> tuner_tables;          // n of ncclTunerPlugin_v<n>

  bool opened() const { return error.empty(); }
  int newest_table_within(int oldest, int newest) const;  // 0: none
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Library, name, missing, path, real_path, found_by,
                                                error, net_tables, collnet_tables, tuner_tables)
Library open_library(const std::string& name);

struct KnownNccl {
  std::optional<NcclVersion> version = {};  // nullopt: not known, or all are meant
  std::string source = {};                  // "--nccl", or the path of a libnccl
};
// `library`: a path, or a name for the dynamic linker.
Result<KnownNccl> ask_nccl_version(const std::string& library);

// A plugin's answers to what NCCL calls: init, devices, getProperties, finalize.
struct DeviceQuery {
  std::string error;                                 // empty: the plugin answered
  nlohmann::json devices = nlohmann::json::array();  // one object per device, NCCL's field names
  std::vector<std::string> warnings, messages;       // what the plugin logged
  Environment changes;                               // NCCL variables that init set
};
DeviceQuery query_devices(const std::string& library, int table);

// Answers that are kept, so that each question is asked in one child process only, however many
// releases raise it. Grows only; neither a deque's nor a map's elements move, so a reference stays
// valid as long as the probe. One thread: each new question forks.
class Probe {
 public:
  const Library& open(const std::string& name);
  const DeviceQuery& query(const std::string& library, int table);
  const std::deque<Library>& libraries() const { return libraries_; }  // in the order of asking

 private:
  std::deque<Library> libraries_;
  std::map<std::pair<std::string, int>, DeviceQuery> queries_;
};

// Where the dynamic linker looks (ld.so(8)): the directories of LD_LIBRARY_PATH.
std::vector<std::string> library_path();
// A directory with libnet-slime.so: of LD_LIBRARY_PATH, else ../lib beside this program. Empty:
// none. A checkout's build/ and an installation both have that layout.
std::string slime_directory();

}  // namespace slime::info
