// Replays the kept corpus: what a fuzzer once found, or needs to get everywhere, guards every
// build.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "test/fuzz/support/target.h"
#include "test/support/temporary_directory.h"

namespace slime::fuzz {
namespace {

// Unpacks the corpus of a target. Empty if there is none.
std::vector<std::filesystem::path> unpack(const std::string& name,
                                          const std::filesystem::path& to) {
  const std::string command =
      "tar -xzf 'test/fuzz/corpus/" + name + ".tar.gz' -C '" + to.string() + "'";
  if (std::system(command.c_str()) != 0) return {};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(to)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, Replays) {
  const test::TemporaryDirectory directory;
  const auto files = unpack(GetParam().name, directory.path());
  ASSERT_FALSE(files.empty()) << "no inputs in test/fuzz/corpus/" << GetParam().name
                              << ".tar.gz; run from the repository's root";
  EXPECT_EQ(GetParam().run(nullptr, 0), 0);
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    std::fprintf(stderr, "%s\n", path.c_str());  // whoever crashes is the last one named
    EXPECT_EQ(GetParam().run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
  }
}

// Also that no corpus is left without its target.
TEST(Corpora, BelongToTargets) {
  for (const auto& entry : std::filesystem::directory_iterator("test/fuzz/corpus")) {
    const std::string name = entry.path().stem().stem();  // without .tar.gz
    EXPECT_TRUE(std::ranges::any_of(targets(), [&](const Target& t) { return t.name == name; }))
        << entry.path();
  }
  EXPECT_GE(targets().size(), 20u);
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, testing::ValuesIn(targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace slime::fuzz
