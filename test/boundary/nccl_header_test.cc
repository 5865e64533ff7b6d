// Our constants against an installed nccl.h. It is read as text: compiling it would need CUDA.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "plugin/abi/tuner_tables.h"

namespace slime::boundary {
namespace {

std::string find_header() {
  std::vector<std::string> places;
  for (const char* name : {"NCCL_HOME", "CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = getenv(name)) places.push_back(std::string(home) + "/include/nccl.h");
  }
  places.insert(places.end(), {"/usr/include/nccl.h", "/usr/local/include/nccl.h",
                               "/usr/local/cuda/include/nccl.h", "/opt/nccl/include/nccl.h"});
  for (const std::string& place : places) {
    if (std::ifstream(place).good()) return place;
  }
  return {};
}

// The number in "name = number", the way an enumerator is written.
std::optional<int> enumerator(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    std::istringstream rest(text.substr(at + name.size(), 40));
    char equals = 0;
    int value = 0;
    if (rest >> equals >> value && equals == '=') return value;
  }
  return std::nullopt;
}

TEST(NcclHeader, AgreesWithOurConstants) {
  const std::string path = find_header();
  if (path.empty()) {
    GTEST_SKIP() << "no nccl.h is installed (looked in NCCL_HOME, CUDA_HOME, /usr/include, "
                    "/usr/local/include, /usr/local/cuda/include, /opt/nccl/include): NOT COMPARED";
  }
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  const std::string text = content.str();
  const std::map<std::string, int> ours = {{"ncclSuccess", nccl::kSuccess},
                                           {"ncclUnhandledCudaError", nccl::kUnhandledCudaError},
                                           {"ncclSystemError", nccl::kSystemError},
                                           {"ncclInternalError", nccl::kInternalError},
                                           {"ncclInvalidArgument", nccl::kInvalidArgument},
                                           {"ncclInvalidUsage", nccl::kInvalidUsage},
                                           {"ncclRemoteError", nccl::kRemoteError},
                                           {"ncclInProgress", nccl::kInProgress}};
  for (const auto& [name, value] : ours) {
    const std::optional<int> theirs = enumerator(text, name);
    ASSERT_TRUE(theirs.has_value()) << name << " is not in " << path;
    EXPECT_EQ(*theirs, value) << name << " in " << path;
  }
}

// The same for "#define name number".
std::optional<int> definition(const std::string& text, const std::string& name) {
  const size_t at = text.find("#define " + name + " ");
  if (at == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(at + name.size() + 9, 40));
  int value = 0;
  return rest >> value ? std::optional<int>(value) : std::nullopt;
}

// What the tuner needs stands in no header that NCCL installs.
TEST(NcclHeader, AgreesWithOurTunerConstants) {
  const char* const source = getenv("NCCL_SRC");
  if (source == nullptr) {
    GTEST_SKIP() << "NCCL_SRC names no source tree of NCCL: NOT COMPARED";
  }
  std::ostringstream content;
  for (const char* file : {"nccl_common.h", "plugin/nccl_tuner.h", "nccl_tuner.h"}) {
    std::ifstream header(std::string(source) + "/src/include/" + file);
    if (header) content << header.rdbuf();
  }
  const std::string text = content.str();
  EXPECT_EQ(enumerator(text, "ncclFuncAllReduce"), nccl::kFuncAllReduce);
  EXPECT_EQ(definition(text, "NCCL_ALGO_COLLNET_DIRECT"), nccl::kAlgoCollNetDirect);
  EXPECT_EQ(definition(text, "NCCL_ALGO_COLLNET_CHAIN"), nccl::kAlgoCollNetChain);
  EXPECT_EQ(definition(text, "NCCL_PROTO_SIMPLE"), nccl::kProtoSimple);
  EXPECT_EQ(definition(text, "NCCL_ALGO_PROTO_IGNORE"), static_cast<int>(nccl::kCostIgnore));
}

}  // namespace
}  // namespace slime::boundary
