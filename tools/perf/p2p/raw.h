// What the engine is compared with: one plain TCP connection, one thread a side. A side that waits
// reads again and again for 20 us, and then sleeps in poll(2), as engines do.
//
//   initiator                           target
//     header {bytes, write}, bytes -->    reads them to their place
//                                  <--  8 bytes: they are there
//     header {bytes, read}         -->
//                                  <--  bytes
//     header {0, end}              -->    serve() returns
//
// Long pieces may be moved by calls of any length, and which is the best one depends on caches and
// buffers: kWays has those that are tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "tools/perf/p2p/endpoint.h"

namespace slime::perf::p2p {

// Bytes of a piece per call into the kernel, at most.
inline constexpr uint64_t kWays[] = {uint64_t{1} << 40, 1 << 20, 256 << 10, 64 << 10};

// The target: listens at a port of the loopback interface, for one connection at a time.
class RawTarget {
 public:
  static Result<std::unique_ptr<RawTarget>> open(std::byte* memory, size_t bytes);
  uint16_t port() const { return port_; }
  // Accepts, and serves the initiator until it says end.
  Result<void> serve();

 private:
  RawTarget(Fd listener, uint16_t port, std::byte* memory, size_t bytes)
      : listener_(std::move(listener)), port_(port), memory_(memory), bytes_(bytes) {}

  const Fd listener_;
  const uint16_t port_;
  std::byte* const memory_;
  const size_t bytes_;
};

class RawInitiator {
 public:
  static Result<std::unique_ptr<RawInitiator>> connect(uint16_t port, std::byte* memory);
  // Answers come in the order of the requests, which is that of the slots.
  Requests requests(const Layout& layout, Operation operation, uint64_t most_a_call);
  Result<void> end();

 private:
  RawInitiator(Fd fd, std::byte* memory) : fd_(std::move(fd)), memory_(memory) {}

  const Fd fd_;
  std::byte* const memory_;
};

}  // namespace slime::perf::p2p
