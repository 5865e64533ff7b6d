// Reads the YAML file. yaml-cpp throws; functions of this file return Results.
#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <vector>

#include "tools/switchd/config.h"

namespace slime::switchd {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

struct Reading {
  const std::string& path;
  Values* values;
  std::map<std::string, int> lines;     // where a key is
  std::map<std::string, int> sections;  // where a section begins
};

Error wrong(const Reading& reading, int line, const std::string& what) {
  return make_error(Status::kConfig, 0, "%s:%d: %s", reading.path.c_str(), line, what.c_str());
}

// An error of make_config(), which begins with the name of a key or section. A key that the file
// lacks is missing in its section; where the file lacks that too, the error has no line.
Error wrong_value(const Reading& reading, const std::string& what) {
  std::string name = what.substr(0, what.find(':'));
  if (const auto key = reading.lines.find(name); key != reading.lines.end()) {
    return wrong(reading, key->second, what);
  }
  for (size_t end = name.size(); end != std::string::npos; end = name.rfind('.')) {
    name.resize(end);
    const auto section = reading.sections.find(name);
    if (section != reading.sections.end()) return wrong(reading, section->second, what);
  }
  return make_error(Status::kConfig, 0, "%s: %s", reading.path.c_str(), what.c_str());
}

// One key of the file. Its line is kept, for errors about values.
Result<void> take(const YAML::Node& node, const std::string& name, int line, Reading* reading) {
  if (is_section(name) && name.find('.') == std::string::npos) {
    return fail(wrong(*reading, line,
                      name +
                          " is a section: its keys go below it, each with a value (--print-config "
                          "shows them)"));
  }
  if (!find_key(name)) {
    return fail(wrong(*reading, line, name + " is no key; the nearest is " + nearest_key(name)));
  }
  if (const auto first = reading->lines.find(name); first != reading->lines.end()) {
    return fail(wrong(*reading, line,
                      name + " is there twice, first in line " + std::to_string(first->second)));
  }
  reading->lines[name] = line;
  if (node.IsNull()) return {};  // "key:" without a value keeps the default
  if (!node.IsScalar()) return fail(wrong(*reading, line, name + " takes one value, not a list"));
  (*reading->values)[name] = node.Scalar();
  return {};
}

// The keys of a map, under the name of the sections around it.
Result<void> walk(const YAML::Node& node, const std::string& prefix, Reading* reading) {
  for (const auto& entry : node) {
    const int line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar()) return fail(wrong(*reading, line, "a key is not a word"));
    const std::string name =
        prefix.empty() ? entry.first.Scalar() : prefix + "." + entry.first.Scalar();
    const bool is_map = is_section(name) && entry.second.IsMap();
    if (is_map) reading->sections.try_emplace(name, line);
    if (is_section(name) && entry.second.IsNull()) continue;
    // Sections are two deep at most, so this is too.
    auto taken =
        is_map ? walk(entry.second, name, reading) : take(entry.second, name, line, reading);
    if (!taken) return taken;
  }
  return {};
}

// The whole file. Directories and devices are refused, which yaml-cpp would try to read.
Result<std::string> load(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return fail(system_error(errno, "configuration file %s", path.c_str()));
  }
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    return fail(Status::kConfig,
                "configuration file %s is %s; name a file, such as /etc/slime/switch.yaml",
                path.c_str(), S_ISDIR(status.st_mode) ? "a directory" : "no file of text");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() || file.bad()) {
    return fail(Status::kConfig,
                "%s: cannot be read, or has more than %zu bytes; may this user read it?",
                path.c_str(), kMaxFileBytes);
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// For an open bracket yaml-cpp reports the end of the file, where it gave up. The mistake is at the
// innermost bracket that is still open there.
std::optional<Error> unclosed_bracket(const Reading& reading, const std::string& text) {
  std::vector<std::pair<char, int>> open;
  int line = 1;
  char quote = 0, before = '\n';
  for (size_t i = 0; i < text.size(); before = text[i++]) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    const bool begins = std::string_view(" \t\n{[,:").find(before) != std::string_view::npos;
    if ((c == '"' || c == '\'') && begins) quote = c;
    if (c == '#' && begins) i = std::min(text.find('\n', i), text.size()) - 1;
    if ((c == '{' || c == '[') && begins) open.emplace_back(c, line);
    if ((c == '}' || c == ']') && !open.empty()) open.pop_back();
  }
  if (open.empty()) return std::nullopt;
  const bool brace = open.back().first == '{';
  return wrong(reading, open.back().second,
               std::string("the ") + (brace ? "{" : "[") + " in this line is not closed by a " +
                   (brace ? "}" : "]"));
}

}  // namespace

Result<Config> read_config(const std::string& path, Values* values) {
  auto text = load(path);
  if (!text) return fail(std::move(text.error()));
  Reading reading{path, values, {}, {}};
  try {
    const YAML::Node root = YAML::Load(*text);
    if (!root.IsNull() && !root.IsMap()) {
      return fail(wrong(reading, root.Mark().line + 1,
                        "not a map of sections (data:, control:, jobs:, ...)"));
    }
    if (auto walked = walk(root, "", &reading); !walked) return fail(walked.error());
  } catch (const YAML::Exception& error) {
    auto open = unclosed_bracket(reading, *text);
    return fail(open ? std::move(*open) : wrong(reading, error.mark.line + 1, error.msg));
  }
  auto config = make_config(*values);
  if (!config) return fail(wrong_value(reading, config.error().what));
  return config;
}

}  // namespace slime::switchd
