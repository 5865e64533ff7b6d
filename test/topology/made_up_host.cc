#include "test/topology/made_up_host.h"

#include <fstream>

namespace slime::test {

namespace fs = std::filesystem;

void MadeUpHost::write(const std::string& file, const std::string& text) {
  const fs::path path = root() / file;
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

void MadeUpHost::add_node(int number, const std::string& cpus, int socket) {
  online_nodes_ += (online_nodes_.empty() ? "" : ",") + std::to_string(number);
  write("devices/system/node/online", online_nodes_);
  write("devices/system/node/node" + std::to_string(number) + "/cpulist", cpus);
  const std::string first = cpus.substr(0, cpus.find_first_of("-,"));
  if (first.empty()) return;  // memory only
  write("devices/system/cpu/cpu" + first + "/topology/physical_package_id", std::to_string(socket));
}

std::string MadeUpHost::add_function(const std::string& path, const std::string& code,
                                     const std::string& vendor, int numa_node) {
  const std::string device = "devices/" + path;
  write(device + "/class", code);
  write(device + "/vendor", vendor);
  write(device + "/numa_node", std::to_string(numa_node));
  const fs::path links = root() / "bus/pci/devices";
  fs::create_directories(links);
  fs::create_directory_symlink(root() / device, links / path.substr(path.find_last_of('/') + 1));
  return root() / device;
}

std::string MadeUpHost::add_gpu(const std::string& path, int numa_node) {
  return add_function(path, "0x030200", "0x10de", numa_node);
}

std::string MadeUpHost::add_nic(const std::string& path, int numa_node) {
  return add_function(path, "0x020700", "0x15b3", numa_node);
}

DgxLikeHost::DgxLikeHost() {
  add_node(0, "0-55,112-167", 0);
  add_node(1, "56-111,168-223", 1);
  int index = 0;
  for (const std::string bus : {"1", "4", "9", "c"}) {
    const auto at = [&bus](const char* rest) { return std::string("0000:").append(bus) + rest; };
    const std::string port = "pci" + at("0/") + at("0:01.0/") + at("1:00.0/") + at("2:0");
    const int node = index++ / 2;
    gpus.push_back(add_gpu(port + "0.0/" + at("3:00.0"), node));
    gpus.push_back(add_gpu(port + "1.0/" + at("4:00.0"), node));
    nics.push_back(add_nic(port + "2.0/" + at("5:00.0"), node));
    nics.push_back(add_nic(port + "3.0/" + at("6:00.0"), node));
  }
  storage_nic = add_nic("pci0000:10/0000:10:05.0/0000:1b:00.0", 0);
  add_function("pci0000:00/0000:00:1c.0/0000:02:00.0", "0x030000", "0x1a03", 0);
}

}  // namespace slime::test
