// A libfabric rail: one domain of one provider, which is a NIC.
//
// Invariants: memory_ has the provider's registrations of each key in regions_, but for the scratch
// memory, whose registrations end with the rail. Capabilities do not change after open().
//
// Threads: any. Its channels belong to a thread each (transports/rail.h).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/interfaces/carrier.h"
#include "settings/settings.h"
#include "transports/closing_queue.h"
#include "transports/fabric/domain.h"
#include "transports/fabric/endpoint.h"
#include "transports/fabric/side_connection.h"
#include "transports/rail.h"
#include "transports/region_table.h"

namespace slime::fabric {

// What is left of a closed channel: a side connection that has messages to send, and an endpoint
// that the peer may still touch, if any. A peer over shm reads and writes the memory of an endpoint
// itself. So the endpoint is closed only when the peer has sent kEnd or its process has ended; a
// peer in this process might crash otherwise. Its completions are not read any more, so nothing
// arrives in our memory.
struct ClosingEndpoint {
  Endpoint endpoint;
  std::unique_ptr<SideConnection> side_connection;
  bool is_done();
};
using ClosingEndpoints = ClosingQueue<ClosingEndpoint, UINT64_MAX, 0>;

class FabricRail final : public Rail {
 public:
  // `side_rail`: a rail over the kernel's TCP.
  static Result<std::unique_ptr<FabricRail>> open(std::unique_ptr<Domain> domain,
                                                  std::shared_ptr<Rail> side_rail,
                                                  const Settings& settings, RailCaps caps);
  ~FabricRail() override;

  const RailCaps& caps() const override { return caps_; }
  Carrier carrier() override;
  Result<MemoryKeys> register_memory(const MemoryRange& range) override;
  void deregister_memory(const MemoryKeys& keys) override;
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) override;
  Result<std::unique_ptr<Flusher>> open_flusher() override;

  // For the channels of this rail, which it must outlive.
  const Settings& settings() const { return settings_; }
  const Domain& domain() const { return *domain_; }
  Rail& side_rail() { return *side_rail_; }
  const RegionTable& regions() const { return regions_; }
  ClosingEndpoints& closing() { return closing_; }
  void warn_unmarked();  // once
  // Memory that nothing is kept in. That of channels has three pieces of eight bytes:
  //   0  warm-ups write from here
  //   1  and into here, at the peer; reads behind silent writes read here, at the peer
  //   2  and land here
  // In that of flushers their reads land.
  struct Scratch {
    std::byte* memory = nullptr;
    void* description = nullptr;  // fi_mr_desc()
    uint64_t address = 0, key = 0;
  };
  const Scratch& scratch() const { return scratch_; }
  // What flushers use; only where a flusher opens. The domain is their own, so its keys open
  // nothing to a peer. (Up to libfabric 2.1 all domains of a NIC are one to efa; its rails do not
  // keep rights anyway.)
  const Domain& flush_domain() const { return *flush_domain_; }
  const Scratch& flush_scratch() const { return flush_scratch_; }
  // The key with which a flusher reads the range of this local key; 0 if it was deregistered.
  Result<uint64_t> flush_key(uint64_t local);
  // Held while a call may copy into or out of our memory, so that deregister_memory() can wait for
  // it. For a NIC it is not needed: closing the registration ends its access.
  std::shared_lock<std::shared_mutex> while_copying() {
    return domain_->traits().in_hardware ? std::shared_lock<std::shared_mutex>()
                                         : std::shared_lock(copying_);
  }
  // Works name their target by Work::remote_offset.
  bool by_offset() const { return !domain_->has(FI_MR_VIRT_ADDR); }
  // Whether the provider can have given out this key.
  bool is_key(uint64_t key) const {
    const size_t bytes = domain_->info().domain_attr->mr_key_size;
    return bytes >= sizeof key || key >> 8 * bytes == 0;
  }

 private:
  FabricRail(std::unique_ptr<Domain> domain, std::shared_ptr<Rail> side_rail,
             const Settings& settings, RailCaps caps);
  // A range is registered for channels, with the rights of peers, and apart from that for flushers:
  // memory of a device from the beginning, while its DMA-BUF is open, and other memory when it is
  // flushed.
  struct Registration {
    MemoryRange range;
    Handle<fid_mr> for_channels, for_flushers;
  };

  Result<void> prepare();
  void announce_device_memory();
  Result<void> prepare_scratch();
  Result<Handle<fid_mr>> make_scratch(const Domain& domain, std::byte* memory, uint64_t access,
                                      Scratch* made);
  Result<Registration> register_range(const MemoryRange& range, uint64_t key);
  Result<void> register_for_flushers(Registration* made, uint64_t key) const;

  const Settings settings_;
  const std::shared_ptr<Rail> side_rail_;
  const std::unique_ptr<Domain> domain_;
  std::unique_ptr<Domain> flush_domain_;  // null: the rail needs no flushers
  RailCaps caps_;
  RegionTable regions_;
  std::shared_mutex copying_;
  struct FreePage {
    void operator()(std::byte* page) const;
  };
  std::unique_ptr<std::byte, FreePage> scratch_memory_;
  Handle<fid_mr> scratch_region_, flush_scratch_region_;
  Scratch scratch_, flush_scratch_;
  ClosingEndpoints closing_;
  std::atomic<bool> warned_unmarked_{false};
  std::mutex mutex_;                         // guards what follows
  std::map<uint64_t, Registration> memory_;  // by local key
};

}  // namespace slime::fabric
