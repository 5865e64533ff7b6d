#include "tools/info/columns.h"
#include "tools/info/print.h"

namespace slime::info {

void print_settings(const SettingsReport& settings, bool with_help, FILE* out) {
  fprintf(out, "Settings%s\n", with_help ? "" : "  (--settings shows range and meaning)");
  for (const std::string& error : settings.errors) {
    fprintf(out, "  ERROR: %s: the plugin reports no devices\n", error.c_str());
  }
  for (const std::string& warning : settings.warnings) {
    fprintf(out, "  warning: %s\n", warning.c_str());
  }
  Columns columns;
  for (const SettingRow& row : settings.rows) {
    const std::string value = row.value.empty() ? "(empty)" : row.value;
    const std::string plain = row.default_value.empty() ? "(empty)" : row.default_value;
    if (!with_help) {
      columns.add({row.name, value, row.source});
      continue;
    }
    fprintf(out, "\n  %s = %s   (%s; default %s)\n", row.name.c_str(), value.c_str(),
            row.source.c_str(), plain.c_str());
    fprintf(out, "      %s\n      Accepted: %s.%s%s\n", row.help.c_str(), row.range.c_str(),
            row.fallback.empty() ? "" : " When not set: ", row.fallback.c_str());
  }
  columns.print("  ", out);
}

}  // namespace slime::info
