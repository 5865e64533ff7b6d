#include "plugin/tuner_policy.h"

#include <utility>

#include "base/log.h"

namespace slime::plugin {

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
