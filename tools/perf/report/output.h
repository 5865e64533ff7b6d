// What --json names: a file, or our standard output. Opened before the run: what cannot be written
// is said at once, and not after an hour.
#pragma once

#include <string>

#include "base/error.h"
#include "base/net/socket.h"

namespace slime::perf {

class JsonFile {
 public:
  // Creates it where it is missing; what is in it stays until the report is written. "-" is our
  // standard output, as is a path that names the same, like /dev/stdout.
  Result<void> open(const std::string& path);
  explicit operator bool() const { return static_cast<bool>(file_); }
  Result<void> write(const std::string& text);

 private:
  std::string path_;
  Fd file_;
  bool is_output_ = false;  // ours: what is there already stays
};

// Whether a file that the user names is where our standard output goes. What is read by a program
// must not be mixed with the table there.
// A path like /dev/stdout, or the file, FIFO or terminal behind it. Not /dev/null and its kind,
// where nothing can be mixed.
bool names_own_output(const std::string& path);

}  // namespace slime::perf
