// Whether a job may be created, and how much of the switch it gets.
//
// States: taking jobs, or draining.
// Invariants: an answer depends on the limits and the arguments alone; what is in use is an
// argument. set_quotas() and set_draining() concern later requests only: jobs that exist keep what
// they were granted.
// Thread rules: one thread, the controller's.
#pragma once

#include <map>
#include <string>

#include "switch/core/driver.h"
#include "switch/protocol/control.h"

namespace slime::net {

struct TenantQuota {
  uint32_t max_jobs = 0;
  uint64_t max_slot_bytes = 0;
};

// What jobs hold, and trees that have reserved room for one.
struct Usage {
  uint32_t jobs = 0;
  uint64_t slot_bytes = 0;
  void add(uint64_t bytes) {
    ++jobs;
    slot_bytes += bytes;
  }
};

// Usage of the whole switch, and of each tenant that holds something.
struct SwitchUsage : Usage {
  std::map<std::string, Usage> by_tenant = {};

  void add(const std::string& tenant, uint64_t bytes) {
    Usage::add(bytes);
    by_tenant[tenant].add(bytes);
  }
  Usage of(const std::string& tenant) const {
    const auto at = by_tenant.find(tenant);
    return at == by_tenant.end() ? Usage{} : at->second;
  }
};

struct Grant {
  uint32_t slots = 0;
  uint32_t lanes = 0;
  uint32_t formats = 0;
  uint64_t slot_bytes = 0;
};

// What a request gets, or why it gets nothing.
template <typename Granted>
using OrRefused = tl::expected<Granted, control::Refused>;

inline tl::unexpected<control::Refused> refuse(control::Refusal why, std::string text) {
  return tl::unexpected<control::Refused>({why, std::move(text)});
}

// Refuses children that no switch could serve. They are in the order of CreateJob: rail by rail.
OrRefused<void> check_children(const std::vector<SocketAddress>& children, uint32_t rails,
                               const SocketAddress& switch_address);

class Admission {
 public:
  Admission(const SwitchShape& shape, uint32_t max_jobs, TenantQuota others,
            std::map<std::string, TenantQuota> tenants)
      : shape_(shape), max_jobs_(max_jobs), others_(others), tenants_(std::move(tenants)) {}

  // Grants as much of the request as the limits leave room for beside `usage`.
  OrRefused<Grant> admit(const control::CreateJob& wanted, const SwitchUsage& usage) const;

  TenantQuota quota_of(const std::string& tenant) const;
  void set_quotas(const TenantQuota& others, std::map<std::string, TenantQuota> tenants) {
    others_ = others;
    tenants_ = std::move(tenants);
  }
  bool draining() const { return draining_; }
  void set_draining(bool on) { draining_ = on; }

 private:
  const SwitchShape shape_;
  const uint32_t max_jobs_;
  TenantQuota others_;  // of tenants that tenants_ does not name
  std::map<std::string, TenantQuota> tenants_;
  bool draining_ = false;
};

}  // namespace slime::net
