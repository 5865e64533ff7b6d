#include "tools/perf/report/report.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tools/perf/report/output.h"

namespace slime::perf {
namespace {

constexpr const char* kVariable = "NCCL_SLIME_STATS";

// As the plugin does: %p is the process, %h the host, %% a percent sign.
std::string expand(const std::string& pattern) {
  char host[256] = "";
  (void)gethostname(host, sizeof host - 1);
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p') path += std::to_string(getpid());
    if (next == 'h') path += host;
    if (next == '%') path += '%';
    if (next == 'p' || next == 'h' || next == '%') {
      ++i;
    } else {
      path += pattern[i];
    }
  }
  return path;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

CounterFile::CounterFile() {
  const char* set = std::getenv(kVariable);
  if (set != nullptr && *set != '\0') {
    path_ = expand(set);
    for_output_ = names_own_output(path_);
    if (!for_output_) return;
  }
  own_.reset(memfd_create("slime-perf counters", MFD_CLOEXEC));
  if (!own_) return;
  path_ = "/proc/self/fd/" + std::to_string(own_.get());
  setenv(kVariable, path_.c_str(), 1);
}

Result<nlohmann::json> CounterFile::read() const {
  struct stat found {};
  if (stat(path_.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    return fail(
        make_error(Status::kUnsupported, 0,
                   "the plugin's counters went to %s=%s, which is no file to read them from",
                   kVariable, path_.c_str()));
  }
  const std::string text = text_of(path_);
  if (text.empty()) {
    return fail(make_error(Status::kUnsupported, 0, "the plugin wrote no counters to %s=%s",
                           kVariable, path_.c_str()));
  }
  return parse_counters(text);
}

void CounterFile::print() const {
  if (!for_output_ || !own_) return;  // without a file of our own the plugin has written there
  const std::string text = text_of(path_);
  // One write, as the other ranks write to the same place.
  fflush(stdout);
  (void)!::write(STDOUT_FILENO, text.data(), text.size());
}

Result<nlohmann::json> parse_counters(const std::string& text) {
  const auto bad = [](const char* why) {
    return fail(make_error(Status::kInvalid, 0, "the plugin's counters are unreadable: %s", why));
  };
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object()) return bad("no JSON object");
  const auto rails = parsed.find("rails");
  if (rails == parsed.end() || !rails->is_array()) return bad("no array \"rails\"");
  for (const auto& rail : *rails) {
    if (!rail.is_object()) return bad("a rail is no object");
  }
  return *rails;
}

}  // namespace slime::perf
