// Replays the kept corpus: what a fuzzer once found, or needs to get everywhere, guards every
// build.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "test/fuzz/support/target.h"

namespace slime::fuzz {
namespace {

std::vector<std::filesystem::path> corpus_of(const std::string& name) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path("test/fuzz/corpus") / name, error)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, Replays) {
  const auto files = corpus_of(GetParam().name);
  ASSERT_FALSE(files.empty()) << "no test/fuzz/corpus/" << GetParam().name
                              << "; run from the repository's root";
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
    const std::string name = entry.path().filename();
    EXPECT_TRUE(std::ranges::any_of(targets(), [&](const Target& t) { return t.name == name; }))
        << entry.path();
  }
  EXPECT_GE(targets().size(), 20u);
}

INSTANTIATE_TEST_SUITE_P(All, Corpus, testing::ValuesIn(targets()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace slime::fuzz
