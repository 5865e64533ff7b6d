// What a rank adds to the report, and how rank 0 puts it together.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "base/json_text.h"
#include "base/process.h"
#include "base/text.h"
#include "tools/perf/report/report.h"

namespace slime::perf {
namespace {

using nlohmann::json;

constexpr const char* kVariable = "NCCL_SLIME_STATS";

// As the plugin does: %p is the process, %h the host, %% a percent sign.
std::string expand(const std::string& pattern) {
  const std::string host = own_host_name();
  const std::map<std::string, std::string> known = {
      {"%p", std::to_string(getpid())}, {"%h", host}, {"%%", "%"}};
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const auto found = known.find(pattern.substr(i, 2));
    path += found != known.end() ? found->second : pattern.substr(i, 1);
    i += found != known.end() ? 1 : 0;
  }
  return path;
}

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

json line_of(const json& rail, size_t rank, const std::string& host) {
  json line = {{"rank", static_cast<int>(rank)},
               {"host", host},
               {"speed_mbps", static_cast<uint64_t>(number_in(rail, "speed_mbps", 0))}};
  for (const char* key : {"device", "rail", "transport", "address"}) {
    line[key] = displayed(text_in(rail, key));
  }
  for (const auto& [name, value] : rail.items()) {  // the counters
    const bool is_counter = value.is_number_unsigned() && is_plain_name(name);
    if (is_counter && !line.contains(name)) line[name] = value;
  }
  return line;
}

}  // namespace

CounterFile::CounterFile() {
  const char* set = std::getenv(kVariable);
  if (set != nullptr && *set != '\0') {
    path_ = expand(set);
    for_output_ = names_own_output(path_);
    if (!for_output_) return;
  }
  own_ = Fd(memfd_create("slime-perf counters", MFD_CLOEXEC));
  if (!own_) return;
  path_ = "/proc/self/fd/" + std::to_string(own_.get());
  setenv(kVariable, path_.c_str(), 1);
}

Result<json> CounterFile::read() const {
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
  const auto bad = [this](const char* why) {
    return fail(make_error(Status::kInvalid, 0, "the plugin's counters in %s are unreadable: %s",
                           path_.c_str(), why));
  };
  const auto parsed =
      parse_json<json>(text, "the plugin's counters in " + path_, rendezvous::part_limits(1));
  if (!parsed) return fail(parsed.error());
  if (!parsed->is_object()) return bad("no JSON object");
  const auto rails = parsed->find("rails");
  if (rails == parsed->end() || !rails->is_array()) return bad("no array \"rails\"");
  for (const json& rail : *rails) {
    if (!rail.is_object()) return bad("a rail is no object");
  }
  return *rails;
}

Result<void> CounterFile::print() const {
  if (!for_output_ || !own_) return {};  // without a file of our own the plugin has written there
  fflush(stdout);
  const Fd output(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  // One write, as the other ranks write to the same place.
  return write_all(output, text_of(path_), std::string("the counters, to ") + kVariable);
}

json CounterFile::part_of_report() const {
  rusage usage{};
  (void)getrusage(RUSAGE_SELF, &usage);
  json part = {{"user_s", seconds(usage.ru_utime)},
               {"system_s", seconds(usage.ru_stime)},
               {"context_switches", usage.ru_nvcsw + usage.ru_nivcsw}};
  if (const auto rails = read()) {
    part["rails"] = *rails;
  } else {
    part["note"] = rails.error().what;
  }
  return part;
}

Result<void> add_parts(const std::vector<json>& parts, const std::vector<RankInfo>& ranks,
                       json* report, std::string* note) {
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    json part = parts[rank];
    if (!part.is_object()) return fail(make_error(Status::kRemote, 0, "malformed counters"));
    const std::string theirs = displayed(text_in(part, "note"));
    if (!theirs.empty()) *note = theirs;
    for (const json& rail : part.value("rails", json::array())) {
      if (rail.is_object()) (*report)["rails"].push_back(line_of(rail, rank, ranks[rank].host));
    }
    part.erase("rails");
    part.erase("note");
    (*report)["processes"].push_back(std::move(part));
  }
  return {};
}

}  // namespace slime::perf
