// A /sys of a host that does not exist, below the directory for temporary files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "test/support/temporary_directory.h"

namespace slime::test {

class MadeUpHost {
 public:
  const std::filesystem::path& root() const { return directory_.path(); }
  void write(const std::string& file, const std::string& text);
  void add_node(int number, const std::string& cpus, int socket);
  // `path` below devices/, as "pci0000:00/0000:00:01.0". Returns the whole path.
  std::string add_function(const std::string& path, const std::string& code,
                           const std::string& vendor, int numa_node);
  std::string add_gpu(const std::string& path, int numa_node);
  std::string add_nic(const std::string& path, int numa_node);

 private:
  const TemporaryDirectory directory_;
  std::string online_nodes_;
};

// As NVIDIA's DGX with 8 GPUs and 8 NICs: two sockets, each a NUMA node with two root complexes,
// and below each of these a switch with two GPUs and two NICs. Socket 0 has a NIC on a root port of
// its own, too, and a management controller. GPUs and NICs are in PCI order.
struct DgxLikeHost : MadeUpHost {
  DgxLikeHost();
  std::vector<std::string> gpus;
  std::vector<std::string> nics;
  std::string storage_nic;
};

}  // namespace slime::test
