#include "tools/common/nccl_conf.h"

#include <cstdlib>
#include <fstream>

namespace slime::tools {
namespace {

constexpr size_t kMaxLine = 4096;  // as NCCL reads them (src/misc/param.cc, setEnvFile)

// Lines that NCCL skips are skipped here: comments, those without a name, and those too long.
void apply_file(const std::string& path, ConfSources* sources) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t equals = line.find('=');
    if (line.starts_with('#') || line.size() >= kMaxLine || equals == std::string::npos ||
        equals == 0 || line.find('\0') != std::string::npos) {
      continue;
    }
    const std::string name = line.substr(0, equals);
    if (getenv(name.c_str()) != nullptr) continue;
    setenv(name.c_str(), line.substr(equals + 1).c_str(), 0);
    (*sources)[name] = path;
  }
}

}  // namespace

ConfSources apply_nccl_conf() {
  ConfSources sources;
  const char* const chosen = getenv("NCCL_CONF_FILE");
  const char* const home = getenv("HOME");
  if (chosen != nullptr && chosen[0] != '\0') {
    apply_file(chosen, &sources);
  } else if (home != nullptr) {
    apply_file(std::string(home) + "/.nccl.conf", &sources);
  }
  apply_file("/etc/nccl.conf", &sources);
  return sources;
}

}  // namespace slime::tools
