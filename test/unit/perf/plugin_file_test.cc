// Names that NCCL gives to dlopen for a value of NCCL_NET_PLUGIN.
#include "tools/common/plugin_file.h"

#include <gtest/gtest.h>

namespace slime::tools {
namespace {

using Names = std::vector<std::string>;

TEST(PluginFileTest, NamesAreTriedAsNcclDoes) {
  EXPECT_EQ(dlopen_names(""), Names{"libnccl-net.so"});
  EXPECT_EQ(dlopen_names("slime"), (Names{"slime", "libnccl-net-slime.so"}));
  EXPECT_EQ(dlopen_names("libnet-slime.so"), Names{"libnet-slime.so"});
  EXPECT_EQ(dlopen_names("/opt/x.so"), Names{"/opt/x.so"});
  EXPECT_EQ(dlopen_names("x.so"), (Names{"x.so", "libnccl-net-x.so.so"}));
}

TEST(PluginFileTest, ListsAreTriedInOrder) {
  EXPECT_EQ(plugin_entries("a,b"), (Names{"a", "b"}));
  EXPECT_EQ(plugin_entries(",a,"), Names{"a"});
  EXPECT_EQ(plugin_entries(""), Names{""});
}

TEST(PluginFileTest, FailureNamesEveryAttempt) {
  std::vector<FailedName> failed;
  const auto library = open_plugin("nosuch,/no/such.so", "", &failed);
  ASSERT_FALSE(library);
  EXPECT_EQ(failed.size(), 3u);
  for (const char* name : {"nosuch", "libnccl-net-nosuch.so", "/no/such.so"}) {
    EXPECT_NE(library.error().what.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(library.error().status, Status::kConfig);
}

TEST(PluginFileTest, NoneMeansNone) {
  const auto library = open_plugin("none", "", nullptr);
  ASSERT_FALSE(library);
  EXPECT_NE(library.error().what.find("none"), std::string::npos);
}

TEST(PluginFileTest, TheFirstThatLoadsIsTaken) {
  const auto library = open_plugin("/no/such.so,libm.so.6", "", nullptr);
  ASSERT_TRUE(library) << library.error().what;
  EXPECT_EQ(library->name, "libm.so.6");
  EXPECT_NE(library->path.find("/libm.so.6"), std::string::npos);
}

}  // namespace
}  // namespace slime::tools
