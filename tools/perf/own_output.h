// Whether a file that the user names is where our standard output goes. What is read by a program
// must not be mixed with the table there.
#pragma once

#include <string>

namespace slime::perf {

// A path like /dev/stdout, or the file, FIFO or terminal behind it. Not /dev/null and its kind,
// where nothing can be mixed.
bool names_own_output(const std::string& path);

}  // namespace slime::perf
