// What FakeFabric says of its NICs, and what a test may ask and do to it.
#include "test/support/fabric/fake_fabric.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "test/support/fabric/fake_fabric_tables.h"

namespace slime::test {

FakeFabric* FakeFabric::current_ = nullptr;

namespace {

// All that one fi_info leads to. Strings are malloc's, as fi_freeinfo() of the real one expects.
struct Block {
  fi_info base = {};
  fi_tx_attr tx = {};
  fi_rx_attr rx = {};
  fi_ep_attr endpoint = {};
  fi_domain_attr domain = {};
  fi_fabric_attr fabric = {};
  fid_nic nic = {};
  fi_bus_attr bus = {};
  fi_link_attr link = {};
  fi_device_attr device = {};

  Block() { join(); }
  Block(const Block& other) = default;
  void join() {
    base.next = nullptr;
    base.tx_attr = &tx;
    base.rx_attr = &rx;
    base.ep_attr = &endpoint;
    base.domain_attr = &domain;
    base.fabric_attr = &fabric;
    if (base.nic != nullptr) base.nic = &nic;
    if (nic.bus_attr != nullptr) nic.bus_attr = &bus;
    if (nic.link_attr != nullptr) nic.link_attr = &link;
    if (nic.device_attr != nullptr) nic.device_attr = &device;
  }
};

char* copy(const char* text) { return text != nullptr ? ::strdup(text) : nullptr; }

std::string text_of(const fi_pci_attr& pci) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", pci.domain_id, pci.bus_id, pci.device_id,
                pci.function_id);
  return text;
}

}  // namespace

struct FakeInfos {
  static fi_info* duplicate(const fi_info* info) {
    if (info == nullptr) return &(new Block())->base;
    auto* const made = new Block(*reinterpret_cast<const Block*>(info));
    made->join();
    made->domain.name = copy(made->domain.name);
    made->device.name = copy(made->device.name);
    made->fabric.name = copy(made->fabric.name);
    made->fabric.prov_name = copy(made->fabric.prov_name);
    return &made->base;
  }
  static void release(fi_info* info) {
    while (info != nullptr) {
      auto* const block = reinterpret_cast<Block*>(info);
      info = info->next;
      std::free(block->domain.name);
      std::free(block->device.name);
      std::free(block->fabric.name);
      std::free(block->fabric.prov_name);
      delete block;
    }
  }

  static fi_info* describe(const FakeNic& nic, const char* fabric, const fi_info& hints) {
    const FakeFabricOptions& options = FakeFabric::current_->options_;
    auto* const made = new Block();
    made->base.caps = hints.caps;
    made->base.mode = FI_CONTEXT2;
    made->base.nic = &made->nic;
    if (nic.on_pci) {
      made->nic.bus_attr = &made->bus;
      made->nic.device_attr = &made->device;
      made->device.name = copy(nic.name.c_str());
    }
    if (nic.has_link) made->nic.link_attr = &made->link;
    made->bus.bus_type = FI_BUS_PCI;
    made->bus.attr.pci = nic.pci;
    made->link.mtu = nic.mtu;
    made->link.speed = nic.speed;
    made->tx.size = options.tx_size;
    made->rx.size = options.rx_size;
    made->endpoint.max_msg_size = size_t{1} << 31;
    made->domain.name = copy(domain_of(nic).c_str());
    made->domain.mr_mode = options.mr_mode;
    made->domain.mr_key_size = made->domain.cq_data_size = sizeof(uint32_t);
    made->domain.ep_cnt = options.ep_cnt;
    made->fabric.name = copy(fabric);
    made->fabric.prov_name = copy(options.provider.c_str());
    return &made->base;
  }

  // Each NIC twice in the form of all versions, the better first; before them in the newer form.
  static int find(uint32_t version, const char* /*node*/, const char* /*service*/,
                  uint64_t /*flags*/, const fi_info* hints, fi_info** found) {
    const FakeObjects::Lock lock(FakeFabric::current_->mutex_);
    const FakeFabricOptions& options = FakeFabric::current_->options_;
    const std::string wanted = hints->fabric_attr->prov_name;
    const bool fits = options.provider == wanted || options.provider.starts_with(wanted + ";");
    const int mr_mode = hints->domain_attr->mr_mode;
    *found = nullptr;
    if (version > options.version) return -FI_ENOSYS;
    FakeFabric::current_->interface_ = version;
    if (!fits || (options.mr_mode & ~mr_mode) != 0) return -FI_ENODATA;
    const bool wants_devices = (hints->caps & FI_HMEM) != 0;
    if (wants_devices && !options.device_memory) return -FI_ENODATA;
    if (wants_devices && (mr_mode & FI_MR_HMEM) == 0) return -FI_ENODATA;
    if (hints->domain_attr->cq_data_size > sizeof(uint32_t)) return -FI_ENODATA;
    fi_info** end = found;
    for (const FakeNic& nic : options.nics) {
      if (options.direct_form) {
        *end = describe(nic, "efa-direct", *hints);
        (*end)->tx_attr->size = 1;  // who takes it is found out
        end = &(*end)->next;
      }
      for (const size_t part : {1, 2}) {
        *end = describe(nic, "efa", *hints);
        (*end)->tx_attr->size /= part;
        end = &(*end)->next;
      }
    }
    return *found != nullptr ? 0 : -FI_ENODATA;
  }

  static int open_devices(fi_fabric_attr* /*attributes*/, fid_fabric** made, void* /*context*/) {
    FakeFabric& in = *FakeFabric::current_;
    const FakeObjects::Lock lock(in.mutex_);
    auto fabric = std::make_unique<FakeFabric::Fabric>();
    fabric->base.fid = {FI_CLASS_FABRIC, nullptr, &FakeObjects::fids};
    fabric->base.ops = &FakeObjects::fabrics;
    *made = &fabric->base;
    in.fabrics_[&fabric->base.fid] = std::move(fabric);
    return 0;
  }
  static uint32_t version() { return FakeFabric::current_->options_.version; }
  static const char* error_text(int code) {
    static std::map<int, std::string> texts;
    const FakeObjects::Lock lock(FakeFabric::current_->mutex_);
    return texts.try_emplace(code, "fake error " + std::to_string(code)).first->second.c_str();
  }
};

FakeFabric::FakeFabric(const FakeFabricOptions& options)
    : options_(options),
      random_(options.seed),
      counts_(options.nics.size()),
      unflushed_(options.nics.size()) {
  std::string name = std::filesystem::temp_directory_path() / "slime-fake-fabric-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr || current_ != nullptr) std::abort();
  root_ = name;
  current_ = this;
  for (const FakeNic& nic : options.nics) make_nic(nic);
  symbols_ = {.getinfo = FakeInfos::find,
              .freeinfo = FakeInfos::release,
              .dupinfo = FakeInfos::duplicate,
              .fabric = FakeInfos::open_devices,
              .version = FakeInfos::version,
              .strerror = FakeInfos::error_text};
}

FakeFabric::~FakeFabric() {
  current_ = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void FakeFabric::make_nic(const FakeNic& nic) {
  if (!nic.on_pci) return;
  const auto function = root_ / "devices/pci0000:00" / text_of(nic.pci);
  const auto devices = root_ / "bus/pci/devices";
  std::filesystem::create_directories(function);
  std::filesystem::create_directories(devices);
  std::ofstream(function / "numa_node") << nic.numa_node << "\n";
  std::filesystem::create_directory_symlink(function, devices / text_of(nic.pci));
}

void FakeFabric::refuse_writes(size_t after, size_t count, int code) {
  const std::lock_guard lock(mutex_);
  writes_before_refusal_ = after;
  refusals_ = count;
  refusal_code_ = code;
}

void FakeFabric::fail_next(int code, int provider_code) {
  const std::lock_guard lock(mutex_);
  fail_next_ = {code, provider_code};
}

void FakeFabric::fail_registrations(int code) {
  const std::lock_guard lock(mutex_);
  registration_code_ = code;
}

std::vector<std::string> FakeFabric::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

size_t FakeFabric::objects() const {
  const std::lock_guard lock(mutex_);
  return fabrics_.size() + domains_.size() + address_vectors_.size() + queues_.size() +
         endpoints_.size() + regions_.size();
}

FakeFabricCounts FakeFabric::counts(size_t nic) const {
  const std::lock_guard lock(mutex_);
  return counts_[nic];
}

std::vector<FakeFabricOption> FakeFabric::options_set() const {
  const std::lock_guard lock(mutex_);
  return options_set_;
}

uint64_t FakeFabric::newest_key() const {
  const std::lock_guard lock(mutex_);
  return next_key_;
}

std::vector<uint64_t> FakeFabric::write_flags() const {
  const std::lock_guard lock(mutex_);
  return write_flags_;
}

}  // namespace slime::test
