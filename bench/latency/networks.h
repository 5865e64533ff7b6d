// The plugin against the system calls of NCCL's own socket transport: messages there and back
// between two hosts, by turns, both driven by the same loop.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace slime::bench {

struct NetworksOptions {
  std::vector<size_t> sizes;
  std::string peer_netns;  // file of the network namespace of rank 1; empty: the same host
  std::string plugin;
  unsigned rounds = 0;
  const char* json = nullptr;
};

// The program's exit status.
int compare_networks(const NetworksOptions& options);

}  // namespace slime::bench
