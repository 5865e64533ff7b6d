// The library that is loaded for a value of NCCL_NET_PLUGIN. test/unit/nccl_rules_test.cc has the
// names.
#include "tools/common/plugin_file.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace slime::tools {
namespace {

TEST(PluginFileTest, FailureNamesEveryAttempt) {
  const auto library = open_plugin("nosuch,/no/such.so", "");
  ASSERT_FALSE(library);
  const std::string& what = library.error().what;
  for (const char* name : {"nosuch", "libnccl-net-nosuch.so", "/no/such.so"}) {
    EXPECT_NE(what.find(std::string(" ") + name + ": "), std::string::npos) << name;
  }
  EXPECT_EQ(std::ranges::count(what, '\n'), 0) << "one line, as in a log";
  EXPECT_EQ(std::ranges::count(what.substr(what.find("Tried:")), ';'), 2) << what;
  EXPECT_EQ(library.error().status, Status::kConfig);
}

TEST(PluginFileTest, TheDefaultLiesInTheDirectory) {
  const std::string directory = "/no/such,directory/" + std::string(300, 'x');
  const auto library = open_plugin("", directory);
  ASSERT_FALSE(library);
  EXPECT_NE(library.error().what.find("Tried: " + directory + "/libnet-slime.so: "),
            std::string::npos);
}

TEST(PluginFileTest, FailureNamesEntriesThatNcclIgnores) {
  const auto library = open_plugin(std::string(300, 'x'), "");
  ASSERT_FALSE(library);
  EXPECT_NE(library.error().what.find("longer than 254 characters"), std::string::npos);
}

TEST(PluginFileTest, NoneMeansNone) {
  for (const std::string word : {"none", "NONE", ","}) {
    const auto library = open_plugin(word, "");
    ASSERT_FALSE(library);
    EXPECT_EQ(library.error().what,
              "NCCL_NET_PLUGIN=" + word + " means no external plugin; unset it");
  }
}

TEST(PluginFileTest, TheFirstThatLoadsIsTaken) {
  const auto library = open_plugin("/no/such.so,libm.so.6", "");
  ASSERT_TRUE(library) << library.error().what;
  EXPECT_EQ(library->name, "libm.so.6");
  EXPECT_NE(library->path.find("/libm.so.6"), std::string::npos);
}

}  // namespace
}  // namespace slime::tools
