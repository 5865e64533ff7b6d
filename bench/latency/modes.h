// Ways to send a message there and back between two processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/abi/net_tables.h"

namespace slime::bench {

inline constexpr size_t kMessageBytes = 8;  // of the ways that are not told a size

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

// Two connections of a network, one for each direction, as between two neighbours of a ring, by its
// table of functions. `handle_fd` takes the handles to the other process. nullptr, after a message:
// it failed, or `net` is nullptr.
std::unique_ptr<PingPong> make_network(int rank, int handle_fd, const nccl::NetV8* net,
                                       size_t bytes);

const nccl::NetV8* load_plugin(const std::string& path);  // nullptr, after a message: it failed
const nccl::NetV8* socket_calls();  // what NCCL's own socket transport asks of the kernel

}  // namespace slime::bench
