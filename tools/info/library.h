// A shared library as NCCL would open it: found or not, why not, and which tables it has.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace slime::info {

struct Library {
  std::string name;  // what dlopen was given; empty: the program itself
  bool opened = false;
  bool missing = false;                   // there is no such file where the dynamic linker looks
  std::string path;                       // what the dynamic linker found
  std::string real_path;                  // the same without symbolic links
  std::string found_by;                   // "path", "LD_LIBRARY_PATH" or "system directories"
  std::string error;                      // dlerror(), or how the process ended that tried
  std::map<int, std::string> net_tables;  // n of ncclNetPlugin_v<n> -> name in the table
  std::vector<int> collnet_tables;        // n of ncclCollNetPlugin_v<n>
  std::vector<int> tuner_tables;          // n of ncclTunerPlugin_v<n>

  int newest_table_within(int oldest, int newest) const;  // 0: none
};

// Opens `name` in a process of its own with the flags NCCL uses. Each name is asked for once.
class Libraries {
 public:
  const Library& open(const std::string& name);
  std::vector<const Library*> asked() const;  // in the order of the questions

 private:
  std::map<std::string, Library> known_;
  std::vector<std::string> order_;
};

// Inside a child process.
void* open_as_nccl(const std::string& name);
std::string last_dl_error();
std::string path_of_library(void* handle, const std::string& otherwise);

}  // namespace slime::info
