// Where the pieces of a long request come from: some at a time, when those before them have begun.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace slime {

class PeerRequest;

// Thread: that which submits the request, then that of the peer's link.
class PieceSource {
 public:
  virtual ~PieceSource() = default;
  // Appends up to so many. An error ends the request.
  virtual Result<void> refill(PeerRequest& request, size_t most) = 0;
  virtual bool at_end() const = 0;
  virtual void rewind() = 0;  // the next one is the first again
};

}  // namespace slime
