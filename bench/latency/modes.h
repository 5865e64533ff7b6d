// Ways to send 8 bytes there and back between two processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace slime::bench {

inline constexpr size_t kMessageBytes = 8;

// One end of a ping-pong. Both processes make one of each, in the same order.
class PingPong {
 public:
  virtual ~PingPong() = default;
  // Round trips of this end: rank 0 begins, rank 1 answers. Appends the nanoseconds of each at rank
  // 0. False, after a message: it failed.
  virtual bool run(unsigned round_trips, std::vector<uint64_t>* ns) = 0;
};

// Over `fd`, a connected TCP socket.
std::unique_ptr<PingPong> make_polling(int rank, int fd);   // recv without waiting, again and again
std::unique_ptr<PingPong> make_blocking(int rank, int fd);  // recv waits in the kernel

// Two connections of the plugin, one for each direction, as between two neighbours of a ring.
// `handle_fd` takes the handles to the other process. nullptr, after a message: it failed.
std::unique_ptr<PingPong> make_plugin(int rank, int handle_fd, const std::string& path);

}  // namespace slime::bench
