#include "plugin/tuner_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace slime::plugin {
namespace {

constexpr std::string_view kFirstLine = "slime-tuner 1";
constexpr size_t kMaxShown = 40;  // of a line in a message

auto order(const TunerRule& rule) {
  return std::tuple(rule.ranks, rule.nodes, rule.from_bytes, rule.to_bytes, rule.verdict);
}

bool is_printable(std::string_view line) {
  return std::ranges::all_of(line, [](char c) { return c == '\t' || (c >= ' ' && c <= '~'); });
}

std::string shown(std::string_view line) { return printable(excerpt(line, kMaxShown)); }

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = line.find_first_not_of(" \t"); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(" \t", end);
  }
  return words;
}

std::optional<uint64_t> number_of(std::string_view word, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stopped != end || value < least || value > most) return std::nullopt;
  return value;
}

std::optional<TunerRule> rule_of(const std::vector<std::string_view>& words) {
  if (words.size() != 5) return std::nullopt;
  TunerRule rule;
  if (words[0] == "prefer") rule.verdict = Verdict::kPrefer;
  if (words[0] == "avoid") rule.verdict = Verdict::kAvoid;
  if (rule.verdict == Verdict::kUnknown) return std::nullopt;
  const auto from = number_of(words[1], 0, TunerFile::kMaxSize);
  const auto to = number_of(words[2], from.value_or(0), TunerFile::kMaxSize);
  const auto ranks = number_of(words[3], 2, TunerFile::kMaxRanks);
  const auto nodes = number_of(words[4], 2, ranks.value_or(0));
  if (!from || !to || !ranks || !nodes) return std::nullopt;
  rule.from_bytes = *from;
  rule.to_bytes = *to;
  rule.ranks = *ranks;
  rule.nodes = *nodes;
  return rule;
}

// Rules of one shape must not overlap. `rules` are sorted, so only neighbours are compared.
Result<void> check_overlap(const std::vector<TunerRule>& rules) {
  const auto clash = [](const TunerRule& left, const TunerRule& right) {
    return left.ranks == right.ranks && left.nodes == right.nodes &&
           right.from_bytes <= left.to_bytes;
  };
  const auto found = std::ranges::adjacent_find(rules, clash);
  if (found == rules.end()) return {};
  return fail(make_error(Status::kConfig, 0,
                         "two lines speak of %llu bytes with %llu ranks on %llu nodes; take one "
                         "of them out",
                         static_cast<unsigned long long>(std::next(found)->from_bytes),
                         static_cast<unsigned long long>(found->ranks),
                         static_cast<unsigned long long>(found->nodes)));
}

// Only a regular file is read: a pipe or a device could make NCCL's initialisation wait.
Result<std::string> content_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return fail(system_error(errno, "cannot open it; correct the path or its rights"));
  struct stat about {};
  std::string text(TunerFile::kMaxBytes + 1, '\0');
  size_t size = 0;
  int code = ::fstat(fd, &about) == 0 ? 0 : errno;
  const bool regular = code == 0 && S_ISREG(about.st_mode);
  while (regular && code == 0 && size < text.size()) {
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got == 0) break;
    if (got > 0) size += static_cast<size_t>(got);
    if (got < 0 && errno != EINTR) code = errno;
  }
  ::close(fd);
  if (code != 0) return fail(system_error(code, "cannot read it"));
  if (!regular) return fail(make_error(Status::kConfig, 0, "it is no regular file; name one"));
  if (size > TunerFile::kMaxBytes) {
    return fail(make_error(Status::kConfig, 0, "it is longer than %zu bytes; name a tuner file",
                           TunerFile::kMaxBytes));
  }
  text.resize(size);
  return text;
}

}  // namespace

Result<TunerFile> TunerFile::read(const std::string& path) {
  auto text = content_of(path);
  auto file = text ? parse(*text) : Result<TunerFile>(fail(std::move(text.error())));
  if (!file) file.error().what = "tuner file " + path + ": " + file.error().what;
  return file;
}

// The error names the line and shows its beginning, so that a person can correct it.
Result<TunerFile> TunerFile::parse(std::string_view text) {
  TunerFile file;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const char* const why = file.refuse_line(++number, line)) {
      return fail(
          make_error(Status::kConfig, 0, "line %zu, \"%s\": %s", number, shown(line).c_str(), why));
    }
  }
  if (number == 0) {
    return fail(make_error(Status::kConfig, 0, "it is empty; it must begin with \"%s\"",
                           kFirstLine.data()));
  }
  std::ranges::sort(file.rules_, {}, order);
  if (auto checked = check_overlap(file.rules_); !checked) return fail(std::move(checked.error()));
  return file;
}

const char* TunerFile::refuse_line(size_t number, std::string_view line) {
  if (line.size() > kMaxLine) return "a line has 200 characters at most";
  if (!is_printable(line)) return "only printable ASCII and a newline at the end are accepted";
  if (number == 1) return line == kFirstLine ? nullptr : "a tuner file begins with slime-tuner 1";
  const auto words = words_of(line);
  if (words.empty() || words[0].front() == '#') return nullptr;
  if (words.size() == 2 && words[0] == "otherwise" && words[1] == "avoid") {
    if (otherwise_ != Verdict::kUnknown) return "it was said before; take one of them out";
    otherwise_ = Verdict::kAvoid;
    return nullptr;
  }
  const auto rule = rule_of(words);
  if (!rule) {
    return "expected \"prefer\" or \"avoid\", first and last size in bytes, ranks, and nodes "
           "(from 2 to ranks); or \"otherwise avoid\"";
  }
  if (rules_.size() == kMaxRules) return "1024 rules are the most; merge some";
  rules_.push_back(*rule);
  return nullptr;
}

TunerAdvice TunerFile::advice_for(uint64_t ranks, uint64_t nodes) const {
  TunerAdvice advice{.rules = {}, .otherwise = otherwise_};
  std::ranges::copy_if(rules_, std::back_inserter(advice.rules), [&](const TunerRule& rule) {
    return rule.ranks == ranks && rule.nodes == nodes;
  });
  return advice;
}

// FNV-1a, 64 bits. It distinguishes different files, and need not resist an attack.
uint64_t TunerFile::digest() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ ((value >> shift) & 0xff)) * 0x100000001b3;
    }
  };
  mix(static_cast<uint64_t>(otherwise_));
  for (const TunerRule& rule : rules_) {
    for (const uint64_t value : {static_cast<uint64_t>(rule.verdict), rule.from_bytes,
                                 rule.to_bytes, rule.ranks, rule.nodes}) {
      mix(value);
    }
  }
  return hash == 0 ? 1 : hash;
}

// The last rule that begins at or before `bytes` is the only one that may cover it.
Verdict TunerAdvice::on(uint64_t bytes) const {
  const auto after = std::ranges::upper_bound(rules, bytes, {}, &TunerRule::from_bytes);
  if (after == rules.begin() || std::prev(after)->to_bytes < bytes) return otherwise;
  return std::prev(after)->verdict;
}

// Without a switch there is nothing to choose. Each reason for no advice is kept for one line in
// the log.
TunerPolicy read_tuner_policy(const Settings& settings) {
  TunerPolicy policy;
  if (settings.switch_address.empty()) {
    if (!settings.tuner_file.empty()) policy.why_not = "NCCL_SLIME_SWITCH names no switch";
    return policy;
  }
  if (!settings.tuner) {
    policy.why_not = "NCCL_SLIME_TUNER is 0";
    return policy;
  }
  if (settings.tuner_file.empty()) {
    policy.why_not = "nothing was measured (NCCL_SLIME_TUNER_FILE is not set)";
    return policy;
  }
  auto file = TunerFile::read(settings.tuner_file);
  if (file) {
    policy.file = std::move(*file);
    return policy;
  }
  SLIME_WARN("%s; NCCL chooses by its own model", file.error().what.c_str());
  policy.why_not = "NCCL_SLIME_TUNER_FILE cannot be used";
  return policy;
}

}  // namespace slime::plugin
