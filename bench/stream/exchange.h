// A plain TCP stream between two processes, both directions at once: what a collective over TCP
// cannot be faster than on the same machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace slime::bench {

// One way of programming it. The best of them is the limit.
struct Variant {
  unsigned threads;   // 1: one thread sends and receives without blocking; 2: one for each
  unsigned sockets;   // 1: both directions on one connection; 2: one connection for each
  size_t io_bytes;    // per call
  bool walks_memory;  // every byte of an operation has its own place, as the user's data has; else
                      // the same io_bytes again and again, which stay in the cache
  std::string name() const;
};
std::vector<Variant> all_variants();

// Seconds that each operation took at the slower of the processes. An operation sends `bytes` and
// receives as many; the next begins when both are done, as in a loop of collectives.
struct Exchange {
  bool ok = false;
  std::vector<double> seconds;
};
Exchange run_exchange(const Variant& variant, size_t bytes, unsigned operations);

}  // namespace slime::bench
