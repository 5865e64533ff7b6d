// The limits of a tool: descriptors, and its end where it gets no memory or no thread.
#pragma once

#include <string>

namespace slime::tools {

// Memory that is missing, or another exception that nobody catches, in whatever thread, ends the
// process with one sentence and this exit code. `who` begins the sentence ("slime-perf: rank 1"),
// `advice` ends it. May be called again with other words.
void end_on_exceptions(const std::string& who, int exit_code, const std::string& advice);

// The soft limit of descriptors becomes the hard one, as NCCL does it (bootstrap.cc,
// setFilesLimit).
void raise_descriptor_limit();

}  // namespace slime::tools
