// The plugin as NCCL uses it: a shared object opened with dlopen, called through its tables only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "plugin/abi/net_tables.h"

namespace slime::boundary {

// What the plugin has logged through NCCL's logger.
struct LogLine {
  nccl::LogLevel level = nccl::kLogNone;
  unsigned long flags = 0;
  std::string text;
};

class Log {
 public:
  static nccl::Logger logger();
  static void clear();
  static std::vector<LogLine> lines();
  static size_t count(nccl::LogLevel level, const std::string& part = "");
  static std::string text();  // all of it, for messages of failed tests
};

// One loaded copy of the plugin. Every copy comes from a file of its own and has its own state.
class Plugin {
 public:
  Plugin();
  static std::string path();  // SLIME_PLUGIN, else lib/libnet-slime.so of the build directory
  const void* find(const std::string& symbol) const;
  void* library() const { return library_; }

 private:
  // Stays as long as the object: a sanitizer reads the symbols in it when it reports.
  class TemporaryFile {
   public:
    TemporaryFile();
    ~TemporaryFile();
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& path() const { return path_; }

   private:
    std::string path_ = "/tmp/libnet-slime-XXXXXX";
  };

  TemporaryFile copy_;
  void* library_ = nullptr;
};

// Removes all NCCL variables for the time of a test and puts them back afterwards.
class CleanEnvironment {
 public:
  CleanEnvironment();
  ~CleanEnvironment();

 private:
  static void remove_all();
  std::vector<std::pair<std::string, std::string>> saved_;
};

size_t open_descriptors();
size_t allocated_bytes();

inline constexpr std::chrono::seconds kPatience(60);

// Calls `step` until it returns true. False: it did not within the time.
bool wait_until(const std::function<bool()>& step, std::chrono::milliseconds limit = kPatience);

// A test on the loopback interface.
class PluginTest : public testing::Test {
 protected:
  PluginTest();
  void set(const char* name, const char* value) { setenv(name, value, 1); }

  CleanEnvironment environment_;
};

std::vector<std::byte> pattern(size_t bytes, unsigned seed);

}  // namespace slime::boundary
