// The environment: any text gives settings or one sentence, and settings print as what they are.

#include "settings/settings.h"
#include "test/fuzz/support/target.h"

namespace slime {

// "NAME=VALUE" lines. A first byte below the number of settings stands for that setting's name.
static Environment environment_of(fuzz::Input& input) {
  static const std::vector<SettingRow> rows = describe(Settings(), {});
  Environment environment;
  while (!input.empty()) {
    const uint32_t index = input.below(256);
    const std::string text = fuzz::text_of(input.bytes(input.below(80)));
    if (index < rows.size()) {
      environment[rows[index].name] = text;
    } else {
      const size_t equals = std::min(text.find('='), text.size());
      environment["NCCL_" + text.substr(0, equals)] = text.substr(equals);
    }
  }
  return environment;
}

SLIME_FUZZ_TARGET(settings, input) {
  const Environment environment = environment_of(input);
  std::vector<std::string> warnings;
  const auto settings = parse_settings(environment, &warnings);
  if (!settings) {
    FUZZ_CHECK(settings.error().status == Status::kConfig && !settings.error().what.empty());
    return;
  }
  // Read back from what they print as, they print the same.
  Environment printed;
  const auto rows = describe(*settings, environment);
  for (const SettingRow& row : rows) printed[row.name] = row.value;
  const auto again = parse_settings(printed);
  FUZZ_CHECK(again);
  const auto twins = describe(*again, printed);
  for (size_t i = 0; i < rows.size(); ++i) FUZZ_CHECK(rows[i].value == twins[i].value);
}

}  // namespace slime
