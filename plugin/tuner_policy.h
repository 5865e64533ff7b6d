// Whether and with what the tuner speaks, decided when the fabric is opened.
#pragma once

#include <optional>
#include <string>

#include "plugin/tuner_file.h"
#include "settings/settings.h"

namespace slime::plugin {

struct TunerPolicy {
  std::optional<TunerFile> file;  // nothing: every choice is NCCL's
  std::string why_not;            // then; empty: nothing that the user would want to read

  uint64_t digest() const { return file ? file->digest() : 0; }
};

// A file that cannot be used is told by a warning, and is as none.
TunerPolicy read_tuner_policy(const Settings& settings);

}  // namespace slime::plugin
