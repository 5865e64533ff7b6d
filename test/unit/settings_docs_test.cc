// The committed manual says what the table says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "settings/settings.h"

namespace slime {
namespace {

constexpr char kManual[] = "docs/configuration.md";  // tests run in the repository root

std::string read_manual() {
  std::ifstream file(kManual);
  EXPECT_TRUE(file.is_open()) << kManual << " is missing; run the tests from the repository root";
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(SettingsManual, MatchesTheTable) {
  EXPECT_EQ(read_manual(), render_settings_markdown())
      << "settings.def changed: slime-info --settings-markdown > " << kManual;
}

TEST(SettingsManual, TellsEverythingAboutEachSetting) {
  const std::string text = render_settings_markdown();
  for (const SettingRow& row : describe(Settings(), {})) {
    EXPECT_THAT(text, testing::HasSubstr("## " + row.name + "\n\n" + row.help));
    EXPECT_THAT(text, testing::HasSubstr("- Accepted: " + row.range + "\n"));
  }
  EXPECT_THAT(text, testing::HasSubstr("`NCCL_SOCKET_IFNAME`"));
}

}  // namespace
}  // namespace slime
