// Which NICs libfabric has for us.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "settings/settings.h"
#include "transports/fabric/rail.h"
#include "transports/fabric/symbols.h"
#include "transports/hca_filter.h"

namespace slime::fabric {

// What the search, and all rails, are given.
struct Opening {
  // The error names a setting that cannot be used.
  static Result<Opening> prepare(const Symbols& symbols, std::shared_ptr<Rail> side_rail,
                                 const Settings& settings, const std::string& sysfs_root = "/sys");

  const Symbols* symbols = nullptr;
  std::shared_ptr<Rail> side_rail;  // a rail over the kernel's TCP
  Settings settings;
  std::string sysfs_root;
  HcaFilter hcas;
  std::vector<std::string> other_interfaces;  // that NCCL_SLIME_IFNAME leaves out
};

struct Nic {
  Info info;
  Traits traits;
  RailCaps caps;
};

// NICs of the provider in NCCL_SLIME_FABRIC_PROVIDER, or of efa, by name. Why a provider or a NIC
// is left out goes to `notes`.
std::vector<Nic> find_nics(const Opening& with, std::vector<std::string>* notes);
std::vector<std::unique_ptr<Rail>> open_nics(const Opening& with, std::vector<Nic> nics,
                                             std::vector<std::string>* notes);

// Whether there is a reason to load libfabric into this process: NCCL_SLIME_FABRIC_PROVIDER names a
// provider, or /sys has a NIC that only libfabric drives.
bool is_wanted(const Settings& settings, const std::string& sysfs_root);

// All libfabric rails of this host.
Result<std::vector<std::unique_ptr<Rail>>> open_fabric_rails(std::shared_ptr<Rail> side_rail,
                                                             const Settings& settings,
                                                             std::vector<std::string>* notes);

}  // namespace slime::fabric
