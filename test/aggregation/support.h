// Ranks as threads, each with a Context of its own, and what the tests say about them.
#pragma once

#include <gtest/gtest.h>
#include <slime/aggregation.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace slime::aggregation {

// What all ranks have in common in these tests; `rank` is filled in.
Options options_for(uint32_t ranks, const std::string& switch_address);

// Runs it for every rank at once, in a thread each.
void each_rank(uint32_t ranks, const std::function<void(uint32_t)>& task);

// The ranks of one job, opened together.
struct Group {
  explicit Group(const Options& options);
  ~Group();  // closes all at once, as they wait for each other

  // For every rank at once, in a thread each.
  void each(const std::function<void(Context&, uint32_t)>& task);
  bool well() const;  // all are open
  Context& operator[](size_t rank) { return *contexts[rank]; }

  std::vector<Outcome> outcomes;
  std::vector<std::unique_ptr<Context>> contexts;
};

// Small whole numbers in any type.
void put(DataType type, void* elements, size_t i, int value);
int get(DataType type, const void* elements, size_t i);
const char* name_of(DataType type);
inline constexpr DataType kAllTypes[] = {
    DataType::kInt8,   DataType::kUint8,   DataType::kInt32,   DataType::kUint32,  DataType::kInt64,
    DataType::kUint64, DataType::kFloat16, DataType::kFloat32, DataType::kBfloat16};
inline bool is_float_type(DataType type) { return type >= DataType::kFloat16; }

// Takes the log while it exists.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  static size_t count(LogLevel level, const std::string& part);
  static std::string text();
};

#define EXPECT_OK(outcome)                             \
  do {                                                 \
    const Outcome& made = (outcome);                   \
    EXPECT_TRUE(static_cast<bool>(made)) << made.what; \
  } while (false)

// The code, and a sentence that mentions `part`.
inline void expect_fails(const Outcome& outcome, Code code, const std::string& part) {
  EXPECT_EQ(static_cast<int>(outcome.code), static_cast<int>(code)) << outcome.what;
  EXPECT_NE(outcome.what.find(part), std::string::npos)
      << "\"" << outcome.what << "\" does not mention \"" << part << "\"";
}

}  // namespace slime::aggregation
