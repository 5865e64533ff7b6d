// The measurements in the file that NCCL_SLIME_TUNER_FILE names. They say for which sizes of
// all_reduce, between how many ranks, CollNet was faster or slower than NCCL's other algorithms.
//
//     slime-tuner 1                      the first line; 1 is the version of the format
//     prefer 65536 1048576 4 4           from, to (bytes, both included), ranks, nodes
//     avoid  1024  65535   4 4
//     otherwise avoid                    sizes that no line covers; without this line: NCCL chooses
//     # a comment; empty lines do not matter
//
// All ranks need the same file: ranks that choose different algorithms for one operation hang. So
// the ranks compare digests when they connect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "settings/settings.h"

namespace slime::plugin {

enum class Verdict : uint8_t { kUnknown, kPrefer, kAvoid };

struct TunerRule {
  Verdict verdict = Verdict::kUnknown;
  uint64_t from_bytes = 0, to_bytes = 0;
  uint64_t ranks = 0, nodes = 0;
  bool operator==(const TunerRule&) const = default;
};

// The rules for one shape of communicator.
struct TunerAdvice {
  std::vector<TunerRule> rules;           // by size; none overlap
  Verdict otherwise = Verdict::kUnknown;  // or kAvoid

  bool empty() const { return rules.empty() && otherwise == Verdict::kUnknown; }
  Verdict on(uint64_t bytes) const;
};

// The rules of a whole file, for all shapes. It does not change after parsing, so any thread may
// read it.
class TunerFile {
 public:
  static constexpr size_t kMaxBytes = 64 << 10, kMaxRules = 1024, kMaxLine = 200;
  static constexpr uint64_t kMaxSize = uint64_t{1} << 62, kMaxRanks = 1 << 20;

  static Result<TunerFile> read(const std::string& path);
  static Result<TunerFile> parse(std::string_view text);

  TunerAdvice advice_for(uint64_t ranks, uint64_t nodes) const;
  // A digest of the rules, whatever the comments and the order of the lines. Never 0.
  uint64_t digest() const;

 private:
  // Parses a line. Not nullptr: why the line is refused.
  const char* refuse_line(size_t number, std::string_view line);

  std::vector<TunerRule> rules_;  // sorted by ranks, nodes, size
  Verdict otherwise_ = Verdict::kUnknown;
};

// Whether the tuner advises NCCL, and by which file. It is decided when the devices are opened.
struct TunerPolicy {
  std::optional<TunerFile> file;  // nullopt: NCCL makes every choice
  std::string why_not;            // why there is no file; empty: no reason worth a line

  uint64_t digest() const { return file ? file->digest() : 0; }
};

// Warns of a file that cannot be used, and goes on without it.
TunerPolicy read_tuner_policy(const Settings& settings);

}  // namespace slime::plugin
