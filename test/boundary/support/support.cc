#include "test/boundary/support/support.h"

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

extern char** environ;
// Present in sanitizer builds, whose malloc does not feed mallinfo2.
extern "C" [[gnu::weak]] size_t __sanitizer_get_current_allocated_bytes();

namespace slime::boundary {
namespace {

std::mutex g_log_mutex;
std::vector<LogLine> g_log;

void capture(nccl::LogLevel level, unsigned long flags, const char* /*file*/, int /*line*/,
             const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(g_log_mutex);
  g_log.push_back({level, flags, text});
}

}  // namespace

nccl::Logger Log::logger() { return capture; }

void Log::clear() {
  const std::lock_guard lock(g_log_mutex);
  g_log.clear();
}

std::vector<LogLine> Log::lines() {
  const std::lock_guard lock(g_log_mutex);
  return g_log;
}

size_t Log::count(nccl::LogLevel level, const std::string& part) {
  size_t n = 0;
  for (const LogLine& line : lines()) {
    if (line.level == level && line.text.find(part) != std::string::npos) ++n;
  }
  return n;
}

std::string Log::text() {
  std::string all;
  for (const LogLine& line : lines()) all += std::to_string(line.level) + " " + line.text + "\n";
  return all;
}

std::string Plugin::path() {
  if (const char* named = getenv("SLIME_PLUGIN")) return named;
  const char* build = getenv("SLIME_BUILD_DIR");
  return std::string(build ? build : "build") + "/lib/libnet-slime.so";
}

Plugin::TemporaryFile::TemporaryFile() {
  const int fd = mkstemp(path_.data());
  if (fd < 0) throw std::runtime_error("cannot create a file in /tmp");
  close(fd);
}

Plugin::TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

Plugin::Plugin() {
  std::filesystem::copy_file(path(), copy_.path(),
                             std::filesystem::copy_options::overwrite_existing);
  library_ = dlopen(copy_.path().c_str(), RTLD_NOW | RTLD_LOCAL);  // the flags that NCCL uses
  if (library_ == nullptr) throw std::runtime_error(path() + " cannot be loaded: " + dlerror());
}

const void* Plugin::find(const std::string& symbol) const {
  return dlsym(library_, symbol.c_str());
}

CleanEnvironment::CleanEnvironment() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (text.rfind("NCCL", 0) != 0 || equals == std::string::npos) continue;
    saved_.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  remove_all();
}

CleanEnvironment::~CleanEnvironment() {
  remove_all();
  for (const auto& [name, value] : saved_) setenv(name.c_str(), value.c_str(), 1);
}

void CleanEnvironment::remove_all() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "NCCL", 4) == 0) {
      names.emplace_back(*entry, static_cast<size_t>(strchr(*entry, '=') - *entry));
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

size_t open_descriptors() {
  size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    n += entry.path().empty() ? 0 : 1;
  }
  return n;
}

size_t allocated_bytes() {
  if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

bool wait_until(const std::function<bool()>& step, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!step()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

PluginTest::PluginTest() {
  set("NCCL_SLIME_IFNAME", "lo");
  set("NCCL_SLIME_HANDSHAKE_TIMEOUT", "60");  // no test is about it, and machines may be busy
  Log::clear();
}

std::vector<std::byte> pattern(size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  unsigned state = seed * 2654435761u + 1;
  for (std::byte& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return data;
}

}  // namespace slime::boundary
