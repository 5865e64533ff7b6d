// NICs of libfabric without hardware: the calls of fabric::Symbols, and the tables behind the
// objects that they return, between memory of this process. Writes move when step() is called, so a
// test decides when. It keeps to what fabric(7), fi_rma(3), fi_cq(3) and fi_efa(7) promise of the
// provider efa, and no more:
//   - data lands without the receiver's polls, in any order, as do completions;
//   - a completion says that the peer's NIC has the write; what the peer has not read of its
//     completion queue when its endpoint closes is lost;
//   - a write to memory that is not registered is an error at its sender, and nothing at its
//   target;
//   - a work with FI_MORE does not move before a work without it is posted on that endpoint;
//   - a place in the send queue is free again when its completion is read;
//   - a context belongs to the provider, which writes into it, until its completion is read;
//   - what lands in device memory is visible only when the NIC has read device memory behind it;
//   - a write without data, which nothing announces, becomes visible in host memory when the NIC
//   has read host memory behind it, or when its region or an endpoint of the NIC closes;
//   - up to 2.4 peers may read and write whatever is registered, and up to 2.1 a key is good in all
//   domains of its NIC.
//
// Threads: any; a lock serializes all calls. One FakeFabric lives at a time.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "transports/fabric/symbols.h"

namespace slime::test {

struct FakeNic {
  std::string name = "efa0";  // of the device
  bool on_pci = true;         // and libfabric knows the device; else its name is the domain's
  fi_pci_attr pci = {0, 0, 0x1e, 0};
  int numa_node = 1;
  bool has_link = true;
  size_t mtu = 8'928;                 // bytes
  size_t speed = 100'000'000'000ULL;  // bits per second
};

inline std::string domain_of(const FakeNic& nic) { return nic.name + (nic.on_pci ? "-rdm" : ""); }

struct FakeFabricOptions {
  uint32_t version = FI_VERSION(2, 6);  // of the library
  std::string provider = "efa";
  bool direct_form = true;  // libfabric lists "efa-direct" before "efa"
  std::vector<FakeNic> nics = {{}, {.name = "efa1", .pci = {0, 0, 0x1f, 0}}};
  uint64_t seed = 1;
  bool reorders = true;
  bool device_memory = false;  // FI_HMEM, with peer to peer
  bool dma_bufs = false;       // and FI_MR_DMABUF
  int mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL;
  size_t ep_cnt = 256;
  size_t tx_size = 256;       // as fi_info says it
  size_t tx_places = 0;       // as they are; 0: the same
  size_t rx_size = 1'024;     // arrivals that nobody has read, before a sender has to ask again
  uint32_t busy_percent = 0;  // of all posts, answered with -FI_EAGAIN
  std::map<int, int> refused = {};  // options of fi_setopt(), with the code that each returns
  bool emulated_write = false;      // FI_OPT_EFA_EMULATED_WRITE
  bool emulated_read = false;       // FI_OPT_EFA_EMULATED_READ
  int emulated_code = 0;            // what asking for them returns
};

// Of one NIC, since it was made.
struct FakeFabricCounts {
  uint64_t writes = 0;  // that were taken
  uint64_t reads = 0;
  uint64_t doorbells = 0;  // of those, without FI_MORE
  uint64_t refused = 0;    // answered with -FI_EAGAIN
  size_t most_held = 0;    // works that FI_MORE held back at one time on one endpoint
};

// A call of fi_setopt().
struct FakeFabricOption {
  int name = 0;
  uint64_t value = 0;
  bool before_enable = false;
};

class FakeFabric {
 public:
  explicit FakeFabric(const FakeFabricOptions& options = {});
  ~FakeFabric();
  FakeFabric(const FakeFabric&) = delete;
  FakeFabric& operator=(const FakeFabric&) = delete;

  const fabric::Symbols& symbols() const { return symbols_; }
  const FakeFabricOptions& options() const { return options_; }
  std::string sysfs_root() const { return root_.string(); }

  bool step();  // false: nothing can move now
  // After so many writes more, `count` of them are answered with this code.
  void refuse_writes(size_t after, size_t count, int code);
  // The next write that moves ends so instead.
  void fail_next(int code, int provider_code);
  void fail_registrations(int code);  // from now on: 0 is no failure
  // A stranger's write with data, and a receive that failed, in all completion queues of the NIC.
  void disturb(size_t nic);

  // Misuse that a provider answers with silence or damage, as sentences.
  std::vector<std::string> violations() const;
  // Fabrics, domains, endpoints, queues, address vectors and registrations that exist.
  size_t objects() const;
  FakeFabricCounts counts(size_t nic) const;
  std::vector<FakeFabricOption> options_set() const;
  std::vector<uint64_t> write_flags() const;  // of the writes that were taken, in their order
  uint64_t newest_key() const;                // of the registrations

 private:
  friend struct FakeInfos;    // the functions behind symbols()
  friend struct FakeObjects;  // and behind what these return
  friend struct FakeQueues;

  struct Fabric {
    fid_fabric base = {};
    size_t domains = 0;
  };
  struct Unflushed {
    uint64_t key = 0;  // of the region
    bool in_device = false;
    std::byte* to = nullptr;
    std::vector<std::byte> bytes;
  };
  struct Domain {
    fid_domain base = {};
    Fabric* fabric = nullptr;
    size_t nic = 0;
    size_t users = 0;  // what was opened on it
    uint64_t caps = 0;
  };
  struct Addresses {
    fid_av base = {};
    Domain* domain = nullptr;
    std::vector<uint32_t> endpoints;  // by fi_addr_t
    size_t users = 0;                 // endpoints
  };
  struct Endpoint;
  struct Entry {
    fi_cq_err_entry content = {};  // err is 0 where it is no error
    const Endpoint* of = nullptr;
    bool arrival = false;
  };
  struct Queue {
    fid_cq base = {};
    Domain* domain = nullptr;
    size_t places = 0;
    std::deque<Entry> entries;
    size_t users = 0;  // endpoints
  };
  struct Region {
    fid_mr base = {};
    Domain* domain = nullptr;
    uint64_t start = 0, bytes = 0, access = 0;
    std::byte* memory = nullptr;  // at `start`
    bool in_device = false;
    void* mapping = nullptr;  // of a DMA-BUF
    size_t mapped = 0;
    Region() = default;
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region();
    std::byte* at(uint64_t address) const { return memory + (address - start); }
  };
  struct Write {
    bool is_read = false;
    uint32_t target = 0;  // number of the peer's endpoint
    uint64_t local_key = 0, from = 0, bytes = 0, to = 0, key = 0;
    std::optional<uint64_t> data;
    void* context = nullptr;
    bool held = false, arrived = false;
    int code = 0, provider_code = 0;  // of its completion
  };
  struct Endpoint {
    fid_ep base = {};
    Domain* domain = nullptr;
    uint32_t number = 0;
    Addresses* addresses = nullptr;
    Queue* queue = nullptr;
    bool enabled = false;
    uint64_t rnr_retry = 0;
    std::deque<Write> writes;  // not complete
    size_t places_taken = 0;
  };

  // fake_fabric.cc
  void make_nic(const FakeNic& nic);
  void complain(const std::string& what) { violations_.push_back(what); }

  // fake_fabric_memory.cc
  long add_region(Domain& domain, const fi_mr_attr& attributes, uint64_t flags, fid_mr** made);
  bool map(const fabric::DmaBuf& buffer, Region* region) const;
  template <typename Condition>
  void make_visible(size_t nic, Condition condition);
  void make_visible(size_t nic, bool in_device) {
    make_visible(nic, [in_device](const Unflushed& one) { return one.in_device == in_device; });
  }

  // fake_fabric_writes.cc
  std::string wrong_with(const Endpoint& endpoint, const fi_msg_rma& message, bool is_read) const;
  long refusal(const Endpoint& endpoint);
  long post(Endpoint& endpoint, const fi_msg_rma& message, uint64_t flags, bool is_read);
  bool may_move(const Endpoint& endpoint, const Write& write) const;
  void arrive(const Endpoint& endpoint, Write& write);
  void move_bytes(const Write& write, const Region& local, const Region& remote);
  void complete(Endpoint& endpoint, size_t index);
  void abandon(Endpoint& endpoint);
  const Region* find_region(const Domain* domain, uint64_t key, uint64_t address, uint64_t bytes,
                            uint64_t access) const;
  Endpoint* endpoint_of(uint32_t number) const;

  // fake_fabric_queues.cc
  void push(const Endpoint& endpoint, const Entry& entry);
  void release(const Entry& entry);

  static FakeFabric* current_;
  mutable std::mutex mutex_;
  const FakeFabricOptions options_;
  fabric::Symbols symbols_;
  std::filesystem::path root_;
  std::mt19937_64 random_;
  std::map<const fid*, std::unique_ptr<Fabric>> fabrics_;
  std::map<const fid*, std::unique_ptr<Domain>> domains_;
  std::map<const fid*, std::unique_ptr<Addresses>> address_vectors_;
  std::map<const fid*, std::unique_ptr<Queue>> queues_;
  std::map<const fid*, std::unique_ptr<Endpoint>> endpoints_;
  std::map<uint64_t, std::unique_ptr<Region>> regions_;  // by key
  std::set<const void*> contexts_;                       // that are the provider's now
  std::vector<FakeFabricCounts> counts_;                 // by NIC
  std::vector<std::deque<Unflushed>> unflushed_;         // by NIC
  std::vector<FakeFabricOption> options_set_;
  std::vector<uint64_t> write_flags_;
  uint32_t next_number_ = 0x11;
  uint64_t next_key_ = 0x1000;
  size_t writes_before_refusal_ = 0, refusals_ = 0;
  int refusal_code_ = 0, registration_code_ = 0;
  std::optional<std::pair<int, int>> fail_next_;
  uint32_t interface_ = 0;  // version that was asked for
  std::vector<std::string> violations_;
};

template <typename Condition>
void FakeFabric::make_visible(size_t nic, Condition condition) {
  for (const Unflushed& each : unflushed_[nic]) {
    if (condition(each)) std::ranges::copy(each.bytes, each.to);
  }
  std::erase_if(unflushed_[nic], condition);
}

}  // namespace slime::test
