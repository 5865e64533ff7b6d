// The file that NCCL_SLIME_STATS names. The process is somebody else's, often root's, and the name
// may lie where others write: nothing is destroyed that is no report.
#pragma once

#include <string>

#include "base/error.h"

namespace slime::plugin {

// Replaces a regular file at once, so that a reader never sees half a report; writes into a FIFO
// that somebody reads, or into a character device. Follows a symbolic link only where nobody else
// can have made or changed it, to a file of this user's own.
Result<void> write_stats(const std::string& path, const std::string& text);

}  // namespace slime::plugin
