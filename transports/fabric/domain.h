// One NIC as libfabric sees it: its fabric and its domain, which all channels of a rail share.
//
// Threads: any (FI_THREAD_SAFE is asked for).
#pragma once

#include <rdma/fi_domain.h>

#include <memory>
#include <string>

#include "transports/fabric/provider.h"
#include "transports/fabric/symbols.h"
#include "transports/rail.h"

namespace slime::fabric {

class Domain {
 public:
  static Result<std::unique_ptr<Domain>> open(const Symbols& symbols, Info info,
                                              const Traits& traits);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  const Symbols& symbols() const { return symbols_; }
  const fi_info& info() const { return *info_; }
  fi_info* mutable_info() const { return info_.get(); }  // fi_endpoint() wants it so
  fid_domain* get() const { return domain_.get(); }
  const Traits& traits() const { return traits_; }
  std::string provider() const { return info_->fabric_attr->prov_name; }
  bool has(uint64_t mr_mode) const {
    return (static_cast<uint64_t>(info_->domain_attr->mr_mode) & mr_mode) != 0;
  }

  // `wanted_key` is used where the provider leaves the choice to us.
  Result<Handle<fid_mr>> register_memory(const MemoryRange& range, uint64_t wanted_key) const;

 private:
  Domain(const Symbols& symbols, Info info, const Traits& traits)
      : symbols_(symbols), info_(std::move(info)), traits_(traits) {}

  const Symbols& symbols_;
  const Info info_;
  const Traits traits_;
  Handle<fid_fabric> fabric_;
  Handle<fid_domain> domain_;
};

}  // namespace slime::fabric
