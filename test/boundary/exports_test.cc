// What the shared objects show to the process that loads them, and what they ask of it.
#include <cstdio>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

#include "test/boundary/support/net.h"

namespace slime::boundary {
namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  char buffer[4096];
  while (pipe && fgets(buffer, sizeof buffer, pipe.get())) text += buffer;
  return text;
}

bool sanitized() {
  const char* kind = getenv("SLIME_SAN");
  return kind != nullptr && *kind != '\0';
}

std::string libslime() {
  const std::string plugin = Plugin::path();
  return plugin.substr(0, plugin.rfind('/') + 1) + "libslime.so.1";
}

std::set<std::string> exports_of(const std::string& library) {
  std::istringstream listed(output_of("nm -D --defined-only '" + library + "'"));
  std::set<std::string> found;
  std::string address, type, name;
  while (listed >> address >> type >> name) found.insert(name);
  return found;
}

TEST(Exports, AreExactlyTheTables) {
  std::set<std::string> expected;
  for (int version = 6; version <= 12; ++version) {
    expected.insert("ncclNetPlugin_v" + std::to_string(version));
    expected.insert("ncclCollNetPlugin_v" + std::to_string(version));
  }
  for (int version = 2; version <= 5; ++version) {
    expected.insert("ncclTunerPlugin_v" + std::to_string(version));
  }
  EXPECT_EQ(exports_of(Plugin::path()), expected);
}

TEST(Exports, OfLibslimeAreExactlyItsHeader) {
  std::ifstream header("include/slime/slime.h");
  std::set<std::string> expected = {"SLIME_1"};
  const std::regex function("^(?:int|const char\\*) (slime_[a-z_]+)\\(.*");
  for (std::string line; std::getline(header, line);) {
    std::smatch match;
    if (std::regex_match(line, match, function)) expected.insert(match[1].str() + "@@SLIME_1");
  }
  EXPECT_GT(expected.size(), 15u);
  EXPECT_EQ(exports_of(libslime()), expected);
}

void check_needed(const std::string& path) {
  SCOPED_TRACE(path);
  std::set<std::string> allowed = {"libc.so.6",
                                   "libm.so.6",
                                   "libpthread.so.0",
                                   "libdl.so.2",
                                   "ld-linux-x86-64.so.2",
                                   "ld-linux-aarch64.so.1"};
  if (sanitized()) allowed.insert({"libstdc++.so.6", "libgcc_s.so.1"});
  std::istringstream listed(output_of("readelf -d '" + path + "'"));
  size_t needed = 0;
  for (std::string line; std::getline(listed, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    ++needed;
    const std::string library =
        line.substr(line.find('[') + 1, line.find(']') - line.find('[') - 1);
    const bool of_sanitizer = sanitized() && library.find("san.so") != std::string::npos;
    EXPECT_TRUE(allowed.count(library) || of_sanitizer) << library;
  }
  EXPECT_GT(needed, 0u);
}

TEST(Exports, NeedOnlyTheBasicLibraries) {
  check_needed(Plugin::path());
  check_needed(libslime());
}

TEST(Exports, StayMappedAfterDlclose) {
  for (const std::string& path : {Plugin::path(), libslime()}) {
    EXPECT_NE(output_of("readelf -d '" + path + "'").find("NODELETE"), std::string::npos) << path;
  }
}

class Tables : public EveryVersion {};
SLIME_FOR_ALL_VERSIONS(Tables);

TEST_P(Tables, AreCompleteAndNamed) {
  EXPECT_STREQ(net_.name(), "SLIME");
  EXPECT_TRUE(net_.complete());
  EXPECT_EQ(net_.set_net_attributes(nullptr), nccl::kSuccess);
}

TEST_P(Tables, TellPropertiesThatNcclAccepts) {
  ASSERT_EQ(net_.init(), nccl::kSuccess);
  int count = 0;
  ASSERT_EQ(net_.devices(&count), nccl::kSuccess);
  ASSERT_EQ(count, 1) << Log::text();
  AnyProperties properties, again;
  ASSERT_EQ(net_.properties(0, &properties), nccl::kSuccess);
  ASSERT_EQ(net_.properties(0, &again), nccl::kSuccess);
  EXPECT_STREQ(properties.name, "lo");
  EXPECT_EQ(properties.name, again.name) << "NCCL keeps the pointer";
  EXPECT_EQ(properties.pci_path, nullptr) << "loopback is virtual";
  EXPECT_EQ(properties.pointer_support, nccl::kPointerHost);
  EXPECT_GT(properties.speed_mbps, 0);
  EXPECT_GE(properties.latency_us, 0);
  EXPECT_EQ(properties.max_comms, 65536);
  EXPECT_EQ(properties.max_receives, 8);
  EXPECT_EQ(properties.net_device_type.value_or(0), nccl::kNetDeviceHost);
  EXPECT_EQ(properties.net_device_version.value_or(0), nccl::kNetDeviceInvalidVersion);
  EXPECT_EQ(properties.registration_is_global.value_or(1), 1);
  EXPECT_EQ(properties.force_flush.value_or(0), 0);
  EXPECT_EQ(properties.members.value_or(std::vector<int>{0}), std::vector<int>{0});
  EXPECT_EQ(properties.max_p2p_bytes.value_or(1 << 30), size_t{1} << 30);
  // NCCL refuses what is not in (0, 1 TiB] (src/transport/net.cc).
  EXPECT_GT(properties.max_collective_bytes.value_or(1), 0u);
  EXPECT_LE(properties.max_collective_bytes.value_or(1), size_t{1} << 40);
  EXPECT_EQ(properties.max_multi_request_size.value_or(1), 1);
  EXPECT_EQ(properties.rail_id.value_or(-1), -1);
  EXPECT_EQ(properties.plane_id.value_or(-1), -1);
  finalize();
}

}  // namespace
}  // namespace slime::boundary
