// A verbs rail: one port of an RDMA NIC, over RoCE or InfiniBand.
//
// Invariants: memory_ has the NIC's registrations of each key in regions_. port_ is the port as it
// was when port() last found it usable, and is replaced as a whole, so a channel may keep the one
// that it was opened with.
//
// Threads: any. Its channels and flushers belong to a thread each (transports/rail.h).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "settings/settings.h"
#include "transports/closing_queue.h"
#include "transports/rail.h"
#include "transports/region_table.h"
#include "transports/verbs/device/port.h"
#include "transports/verbs/device/symbols.h"
#include "transports/verbs/queue_pair.h"

namespace slime::verbs {

class VerbsRail final : public Rail {
 public:
  VerbsRail(const Port& port, const Settings& settings, const RailCaps& caps);
  ~VerbsRail() override;

  const RailCaps& caps() const override { return caps_; }
  Carrier carrier() override;
  Result<MemoryKeys> register_memory(const MemoryRange& range) override;
  void deregister_memory(const MemoryKeys& keys) override;
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) override;
  Result<std::unique_ptr<Poller>> open_poller() override;
  Result<std::unique_ptr<Flusher>> open_flusher() override;

  // For the channels of this rail, which it must outlive.
  const Settings& settings() const { return settings_; }
  // The port's present state: it is read again after an event. An error says why the port cannot be
  // used.
  Result<std::shared_ptr<const Port>> port();
  std::shared_ptr<const Port> last_port();  // its state when it was read last
  Nic& nic() const { return *nic_; }
  const RegionTable& regions() const { return regions_; }
  // What a flusher reads this range with, which is registered with this local key. Where it is not
  // any more, a key that opens nothing.
  Result<uint32_t> flush_key(uint64_t local);
  ClosingQueue<ClosingPairs>& closing() { return closing_; }

 private:
  // A range is registered for peers, with its rights, and apart from that for flushers: memory of a
  // device from the beginning, while its DMA-BUF is open, and other memory when it is flushed.
  struct Registration {
    MemoryRange range;
    ibv_mr *for_peers = nullptr, *for_flushers = nullptr;
  };

  Result<ibv_mr*> register_with_nic(ibv_pd* pd, const MemoryRange& range, unsigned access);
  Result<uint64_t> add(Registration* made);  // its local key
  void deregister(const Registration& registration);

  const Settings settings_;
  const RailCaps caps_;
  const std::shared_ptr<Nic> nic_;
  RegionTable regions_;
  ClosingQueue<ClosingPairs> closing_;
  std::mutex memory_mutex_;
  std::map<uint64_t, Registration> memory_;  // by local key
  std::mutex port_mutex_;
  std::shared_ptr<const Port> port_;
};

// All verbs rails of this host. Why the backend or a port is left out goes to `notes`; what is
// amiss with a port that is used is a warning in the log.
Result<std::vector<std::unique_ptr<Rail>>> open_verbs_rails(const Settings& settings,
                                                            std::vector<std::string>* notes);
// The same of other NICs than libibverbs knows.
Result<std::vector<std::unique_ptr<Rail>>> open_verbs_rails(const Symbols& verbs,
                                                            const std::string& sysfs_root,
                                                            const Settings& settings,
                                                            std::vector<std::string>* notes);

}  // namespace slime::verbs
