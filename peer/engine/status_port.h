// What an engine tells of itself to slime-info --peers: who connects gets one text, and the
// connection ends. Nothing is read.
//
// The socket has a name without a file (unix(7), abstract): it goes with the process, however that
// ends, and other network namespaces do not see it. Processes of other users but root get nothing.
// Thread: that of the engine.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace slime {

class StatusPort {
 public:
  static constexpr char kPrefix[] = "libslime-";   // then: user, process, and number in it
  static constexpr size_t kMostBytes = 128 << 10;  // of a text: a socket takes that at once
  static constexpr int kCallersATurn = 4;

  using Report = std::function<std::string()>;
  static Result<std::unique_ptr<StatusPort>> open(Report report);
  int descriptor() const { return listener_.get(); }
  // True: somebody has called.
  bool answer();

 private:
  StatusPort(Fd listener, Report report)
      : listener_(std::move(listener)), report_(std::move(report)) {}

  const Fd listener_;
  const Report report_;
};

}  // namespace slime
