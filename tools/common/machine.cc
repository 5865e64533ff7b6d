#include "tools/common/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace slime::tools {
namespace {

// The value of the first line "key<blanks>: value" of a file such as /proc/cpuinfo.
std::string value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

uint64_t memory_in_kib(const char* key) {
  return std::strtoull(value_in("/proc/meminfo", key).c_str(), nullptr, 10) * 1024;
}

}  // namespace

Machine describe_machine() {
  Machine machine;
  utsname names{};
  if (uname(&names) == 0) {
    machine.host = names.nodename;
    machine.kernel =
        std::string(names.sysname) + " " + names.release + " " + std::string(names.machine);
  }
  machine.cpu = value_in("/proc/cpuinfo", "model name");
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    machine.cores = static_cast<unsigned>(CPU_COUNT(&set));
  }
  machine.memory_bytes = memory_in_kib("MemTotal");
  machine.available_bytes = memory_in_kib("MemAvailable");
  return machine;
}

nlohmann::json to_json(const Machine& machine) {
  return {{"host", machine.host},
          {"kernel", machine.kernel},
          {"cpu", machine.cpu},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory_bytes}};
}

}  // namespace slime::tools
