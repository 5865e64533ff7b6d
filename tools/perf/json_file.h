// The file that --json names. Opened before the run: what cannot be written is said at once, and
// not after an hour.
#pragma once

#include <slime/result.h>
#include <slime/socket.h>

#include <string>

namespace slime::perf {

class JsonFile {
 public:
  // Creates it where it is missing; what is in it stays until the report is written. An empty path
  // is no file.
  Result<void> open(const std::string& path);
  explicit operator bool() const { return static_cast<bool>(file_); }
  Result<void> write(const std::string& text);

 private:
  std::string path_;
  Fd file_;
};

}  // namespace slime::perf
