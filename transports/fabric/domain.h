// What a provider of libfabric does, and one of its NICs: the fabric and the domain that all
// channels of a rail share.
//
// Threads: any (FI_THREAD_SAFE is asked for).
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "transports/fabric/symbols.h"
#include "transports/rail.h"

namespace slime::fabric {

// By the provider's name and version. Sources: fi_efa(7), fi_shm(7), fi_tcp(7), fi_rxm(7), and the
// release notes of libfabric; what shm, tcp and rxm do was seen with 1.17 and 2.6.
struct Traits {
  // A NIC moves the data. Otherwise both ends' processes do, while they poll.
  bool in_hardware = false;
  // The rail asks for GPU memory (FI_HMEM). Not of ofi_rxm, which would register its own buffers
  // with CUDA, also in the data path, and grants no endpoint peer to peer.
  bool device_memory = false;
  // A write completes when it has arrived (FI_DELIVERY_COMPLETE). With a completion at the
  // transmission already, this end would not get an error of the peer.
  bool delivery_complete = false;
  // The receiver's process copies out of the sender's memory. So works that are under way when the
  // sender closes must not be reported: their memory may be in use for something else.
  bool reads_peer_memory = false;
  // A write that the peer refuses is dropped without an error; channels find such writes by
  // counting (RefusalWatch).
  bool refuses_silently = false;
  // FI_MORE holds the doorbell back, and loses none.
  bool more = false;
  // RailCaps::keeps_rights.
  bool keeps_rights = true;
  // Has reads and silent writes, as rail.h promises them. Not shm: it reports a refused one as done
  // (2.6), or never (1.17). Not tcp: it answers a read out of memory whose registration was closed
  // meanwhile. Both were seen with 1.17 and 2.6; verbs;ofi_rxm was not tried.
  bool reads = false;
  // What may go wrong all the same, for a warning.
  const char* fault = nullptr;
};

// The error says why this provider of this version cannot be a rail.
Result<Traits> traits_of(std::string_view provider, uint32_t version);

class Domain {
 public:
  static Result<std::unique_ptr<Domain>> open(const Symbols& symbols, Info info,
                                              const Traits& traits);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  const Symbols& symbols() const { return symbols_; }
  const fi_info& info() const { return *info_; }
  fid_domain* get() const { return domain_.get(); }
  const Traits& traits() const { return traits_; }
  std::string provider() const { return info_->fabric_attr->prov_name; }
  bool has(uint64_t mr_mode) const {
    return (static_cast<uint64_t>(info_->domain_attr->mr_mode) & mr_mode) != 0;
  }

  // CUDA memory may be registered, if the endpoints can use it (EndpointCaps).
  bool has_device_memory() const { return (info_->caps & FI_HMEM) != 0; }

  // `access`: of fi_mr(3). `wanted_key` is used where the provider leaves the choice to us.
  Result<Handle<fid_mr>> register_memory(const MemoryRange& range, uint64_t wanted_key,
                                         uint64_t access) const;
  // Flags of fi_mr(3) for memory of works: this end's use, and the rights of peers.
  uint64_t access_of(uint8_t rights) const;
  // Tries to register an invalid descriptor: a provider and driver that take DMA-BUFs say EBADF.
  bool takes_dma_bufs() const;

 private:
  int ask_for_memory(const MemoryRange& range, const DmaBuf* buffer, uint64_t wanted_key,
                     uint64_t access, fid_mr** region) const;

  Domain(const Symbols& symbols, Info info, const Traits& traits)
      : symbols_(symbols), info_(std::move(info)), traits_(traits) {}

  const Symbols& symbols_;
  const Info info_;
  const Traits traits_;
  Handle<fid_fabric> fabric_;
  Handle<fid_domain> domain_;
};

}  // namespace slime::fabric
