// Writes docs/configuration.md from the table, so that the manual cannot differ from the parser.

#include "settings/table.h"

namespace slime {
namespace {

constexpr char kIntroduction[] =
    R"(# Configuration

<!-- Made from settings/settings.def by `slime-info --settings-markdown`; edit that table. -->

The plugin is configured by environment variables, read once when NCCL initialises it. Their prefix
is `NCCL_SLIME_`, because launchers forward variables that begin with `NCCL`; a line in
`/etc/nccl.conf` or `~/.nccl.conf` works too; spaces around a value do not count.

- A malformed value or one out of range is an error that names the variable and what is accepted.
  Of NCCL's own variables this holds for texts; another such value counts as not set, and a count
  that is too large as the largest that is accepted, with a warning.
- An empty value counts as not set.
- A value that this host cannot use (a key file that cannot be read, a congestion control that the
  kernel lacks) is warned of at the start, and is an error where it is needed.
- An unknown `NCCL_SLIME_` name has no effect; a warning names the nearest one that exists.
- Sizes take the suffixes K, M and G, powers of 1024. Times take fractions, as in `2.5`.
- `slime-info` shows each setting with its value and where it came from.

)";

std::string code(const std::string& text) { return text.empty() ? "empty" : "`" + text + "`"; }

void append_row(const SettingRow& row, std::string* text) {
  *text += "## " + row.name + "\n\n" + row.help + "\n\n";
  *text += "- Default: " + code(row.default_value) + "\n";
  *text += "- Accepted: " + row.range + "\n";
  if (!row.fallback.empty()) *text += "- When it is not set: " + code(row.fallback) + "\n";
  *text += "\n";
}

}  // namespace

std::string render_settings_markdown() {
  std::string text = kIntroduction;
  for (const SettingRow& row : describe(Settings(), Environment())) append_row(row, &text);
  text.pop_back();  // the empty line after the last row
  return text;
}

}  // namespace slime
