#include "aggregation/mode.h"

namespace slime::aggregation {

const char* name_of(Mode mode) {
  switch (mode) {
    case Mode::kNormal:
      return "normal";
    case Mode::kDummy:
      return "dummy";
    case Mode::kBypass:
      return "bypass";
    case Mode::kInstant:
      return "instant";
  }
  return "unknown";
}

Result<Mode> mode_of(const std::string& name) {
  if (name.empty()) return Mode::kNormal;
  for (const Mode mode : {Mode::kNormal, Mode::kDummy, Mode::kBypass, Mode::kInstant}) {
    if (name == name_of(mode)) return mode;
  }
  return fail(make_error(Status::kConfig, 0,
                         "NCCL_SLIME_DEBUG_MODE=\"%s\" is not accepted: expected normal, dummy, "
                         "bypass or instant",
                         name.c_str()));
}

const char* warning_of(Mode mode) {
  switch (mode) {
    case Mode::kNormal:
      return "";
    case Mode::kDummy:
      return "there is no network: a switch in this process sums up this rank's own data as if it "
             "came from all ranks";
    case Mode::kBypass:
      return "numbers are not converted: sums of floats mean nothing";
    case Mode::kInstant:
      return "nothing is computed: operations are complete at once and outputs are not written";
  }
  return "";
}

}  // namespace slime::aggregation
