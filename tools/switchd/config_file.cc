// The YAML file. yaml-cpp throws; nothing leaves this file but a Result.
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "tools/switchd/config.h"

namespace slime::switchd {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

struct Reading {
  const std::string& path;
  Values* values;
  std::map<std::string, int> lines;  // where a key is
};

Error wrong(const Reading& reading, int line, const std::string& what) {
  return make_error(Status::kConfig, 0, "%s:%d: %s", reading.path.c_str(), line, what.c_str());
}

Result<void> take(const YAML::Node& node, const std::string& name, int line, Reading* reading) {
  if (!is_key(name)) {
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

Result<void> walk(const YAML::Node& node, const std::string& prefix, Reading* reading) {
  for (const auto& entry : node) {
    const int line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar()) return fail(wrong(*reading, line, "a key is not a word"));
    const std::string name =
        prefix.empty() ? entry.first.Scalar() : prefix + "." + entry.first.Scalar();
    if (is_section(name) && entry.second.IsNull()) continue;
    // Sections are two deep at most, so this is too.
    auto taken = is_section(name) && entry.second.IsMap() ? walk(entry.second, name, reading)
                                                          : take(entry.second, name, line, reading);
    if (!taken) return taken;
  }
  return {};
}

Result<std::string> load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() || file.bad()) {
    return fail(make_error(Status::kConfig, 0,
                           "%s: cannot be read, or has more than %zu bytes; is the name right?",
                           path.c_str(), kMaxFileBytes));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<Config> read_config(const std::string& path, Values* values) {
  auto text = load(path);
  if (!text) return fail(std::move(text.error()));
  Reading reading{path, values, {}};
  try {
    const YAML::Node root = YAML::Load(*text);
    if (!root.IsNull() && !root.IsMap()) {
      return fail(wrong(reading, 1, "not a map of sections (data:, control:, jobs:, ...)"));
    }
    if (auto walked = walk(root, "", &reading); !walked) return fail(walked.error());
  } catch (const YAML::Exception& error) {
    return fail(wrong(reading, error.mark.line + 1, error.msg));
  }
  auto config = make_config(*values);
  if (!config) {
    const std::string name = config.error().what.substr(0, config.error().what.find(':'));
    const auto line = reading.lines.find(name);
    return fail(
        wrong(reading, line == reading.lines.end() ? 1 : line->second, config.error().what));
  }
  return config;
}

}  // namespace slime::switchd
