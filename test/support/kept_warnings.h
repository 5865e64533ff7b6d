// Keeps the warnings of the log that contain a text, while it lives. One at a time.
#pragma once

#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"

namespace slime::test {

class KeptWarnings {
 public:
  explicit KeptWarnings(const char* part) {
    part_ = part;
    lines_.clear();
    log::set_sink(keep);
  }
  ~KeptWarnings() { log::set_sink(nullptr); }
  KeptWarnings(const KeptWarnings&) = delete;
  KeptWarnings& operator=(const KeptWarnings&) = delete;

  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  static void keep(log::Level level, const char*, int, const char* text) {
    if (level != log::Level::kWarn || std::strstr(text, part_) == nullptr) return;
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(text);
  }

  static inline std::mutex mutex_;
  static inline const char* part_ = "";
  static inline std::vector<std::string> lines_;
};

}  // namespace slime::test
