// One opened RDMA device: what its ports, and all rails on them, share.
//
// States: the device works, until an event reports that it has failed; then check_health() returns
// an error for good, and the carrier of all its ports is down.
//
// Threads: any. Each call of read_events() or check_health(), of any rail or channel of the device,
// reads the events of all its ports.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/fd.h"
#include "base/interfaces/carrier.h"
#include "transports/verbs/device/symbols.h"

namespace slime::verbs {

// Memory that is registered must not share a page with anything that a forked child may use
// (ibv_fork_init(3)).
inline constexpr size_t kPage = 4096;

// Where to look when the kernel refuses a registration or a queue with this code. EAGAIN is what
// the rdma controller of cgroups says (rdmacg_try_charge() in Linux's kernel/cgroup/rdma.c).
inline const char* limit_behind(int code) {
  return code == EAGAIN ? "rdma.max of this process's cgroup" : "`ulimit -l`";
}

// The state of a port, as its events have reported it.
struct PortHealth {
  std::atomic<Carrier> carrier{Carrier::kUnknown};
  // Counts the changes of LID, GID, P_Key and state: see find_change().
  std::atomic<uint32_t> changes{0};
};

template <typename T>
struct Registered;

class Nic {
 public:
  static constexpr size_t kMostPorts = 8;

  static Result<std::shared_ptr<Nic>> open(const Symbols& verbs, ibv_device* device,
                                           const std::string& sysfs_root);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  const Symbols& verbs() const { return verbs_; }
  ibv_context* context() const { return context_; }
  ibv_pd* pd() const { return pd_; }
  // Its queue pairs are those of flushers, so what is registered with it is out of a peer's reach.
  ibv_pd* flush_pd() const { return flush_pd_; }
  // Null, with errno, where the kernel refuses.
  CompletionQueue create_completion_queue(uint32_t places,
                                          ibv_comp_channel* events = nullptr) const {
    return {verbs_.create_cq(context_, static_cast<int>(places), nullptr, events, 0), {&verbs_}};
  }
  // Where completion queues announce their completions. Reading it never waits.
  Result<std::shared_ptr<ibv_comp_channel>> create_event_channel() const;
  void drop_events(ibv_comp_channel& channel) const;
  MemoryRegion register_own(ibv_pd* pd, void* memory, size_t bytes, int access) const {
    return {verbs_.reg_mr(pd, memory, bytes, access), {&verbs_}};
  }
  // Eight bytes that every peer may read.
  const Registered<uint64_t>& readable() const { return *readable_; }
  const std::string& name() const { return name_; }
  const std::string& sysfs_root() const { return sysfs_root_; }
  uint64_t guid() const { return guid_; }
  const ibv_device_attr& attributes() const { return attributes_; }
  bool has_reads() const {
    return attributes_.max_qp_init_rd_atom > 0 && attributes_.max_qp_rd_atom > 0;
  }
  // RDMA READs that a queue pair may have under way, and that it answers, at once: 1 to kMostReads.
  uint8_t reads() const;
  uint8_t reads_of_peer() const;
  bool takes_dma_bufs() const { return takes_dma_bufs_; }
  // Soft-RoCE (rdma_rxe) says so, and takes a retry count of 7 for endless.
  bool is_software() const { return attributes_.vendor_id == 0xffffff; }

  // Reads what has happened; never waits.
  void read_events();
  PortHealth& port(int number) { return ports_[static_cast<size_t>(number - 1) % kMostPorts]; }
  // Reads events; an error if the device has failed for good.
  Result<void> check_health();

 private:
  Nic(const Symbols& verbs, std::string name, std::string sysfs_root)
      : verbs_(verbs), name_(std::move(name)), sysfs_root_(std::move(sysfs_root)) {}
  Result<void> open_device(ibv_device* device);
  bool probe_dma_bufs() const;
  void take(const ibv_async_event& event);
  Error failure(const char* what, int code = errno) const;

  const Symbols& verbs_;
  const std::string name_, sysfs_root_;
  const uint32_t process_ = OwnDescriptors::process();  // that opened it
  ibv_context* context_ = nullptr;
  ibv_pd *pd_ = nullptr, *flush_pd_ = nullptr;
  std::unique_ptr<Registered<uint64_t>> readable_;
  uint64_t guid_ = 0;
  ibv_device_attr attributes_ = {};
  bool takes_dma_bufs_ = false;
  std::array<PortHealth, kMostPorts> ports_;
  std::atomic<bool> dead_ = false;
  std::mutex mutex_;  // of the descriptor of events
};

// A T that queue pairs use, registered with its NIC, on pages of its own: see kPage.
template <typename T>
struct alignas(kPage) Registered {
  static Result<std::unique_ptr<Registered>> create(const Nic& nic, ibv_pd* pd,
                                                    int access = IBV_ACCESS_LOCAL_WRITE) {
    auto made = std::make_unique<Registered>();
    made->region = nic.register_own(pd, &made->value, sizeof made->value, access);
    if (made->region != nullptr) return made;
    return fail(system_error(errno, "ibv_reg_mr of %zu bytes failed; see %s", sizeof made->value,
                             limit_behind(errno)));
  }
  template <typename Part>
  ibv_sge piece(const Part& part) const {
    return {reinterpret_cast<uint64_t>(&part), sizeof part, region->lkey};
  }

  T value = {};
  MemoryRegion region;
};

}  // namespace slime::verbs
