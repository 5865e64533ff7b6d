#include "switch/controller/admission.h"

#include <algorithm>

#include "switch/core/slots.h"

namespace slime::net {

using control::Refusal;

namespace {

std::string number(uint64_t value) { return std::to_string(value); }

// 224.0.0.0/4 and 255.255.255.255 (RFC 1112, RFC 919), ff00::/8 (RFC 4291): one child could make
// the switch flood a network.
bool reaches_many(const SocketAddress& address) {
  if (!address.is_ipv6()) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.data());
    return ntohl(v4->sin_addr.s_addr) >> 28 == 0xe || v4->sin_addr.s_addr == INADDR_BROADCAST;
  }
  return IN6_IS_ADDR_MULTICAST(&reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr);
}

uint64_t left(uint64_t limit, uint64_t taken) { return limit > taken ? limit - taken : 0; }

std::string memory_words(const control::CreateJob& wanted, uint32_t lanes, uint64_t free_bytes,
                         const char* whose) {
  return "at least " + number(wanted.slots_least) + " slots of " + number(lanes) + " lanes need " +
         number(Slots::bytes_for(wanted.slots_least, lanes)) + " bytes, and " + number(free_bytes) +
         " are left " + whose;
}

// Where the operator of the switch gives this tenant more.
std::string raised_by(const std::string& tenant, const char* key) {
  return "the switch's configuration raises it: tenants." + tenant + "." + key +
         ", or jobs.tenant_" + key;
}

}  // namespace

OrRefused<void> check_children(const std::vector<SocketAddress>& children, uint32_t rails,
                               const SocketAddress& switch_address) {
  if (rails < 1 || rails > sap::kMaxRails || children.size() % rails != 0) {
    return refuse(Refusal::kShape, number(children.size()) + " addresses of children on " +
                                       number(rails) + " rails each; 1 to " +
                                       number(sap::kMaxRails) + " rails are possible");
  }
  const size_t count = children.size() / rails;
  for (size_t i = 0; i < children.size(); ++i) {
    const SocketAddress& child = children[i];
    const char* why = child.port() == 0         ? "has no port"
                      : child.is_any()          ? "is no address of a host"
                      : reaches_many(child)     ? "is a multicast or broadcast address"
                      : child == switch_address ? "is the switch itself"
                      : child.family() != switch_address.family() ? "is of the other IP version"
                                                                  : nullptr;
    if (why == nullptr && std::find(children.begin(), children.begin() + static_cast<long>(i),
                                    child) != children.begin() + static_cast<long>(i)) {
      why = "is there twice";
    }
    if (why != nullptr) {
      const std::string rail = rails > 1 ? " on rail " + number(i / count) : "";
      return refuse(Refusal::kShape,
                    "child " + number(i % count) + rail + ", " + child.to_string() + ", " + why);
    }
  }
  return {};
}

TenantQuota Admission::quota_of(const std::string& tenant) const {
  const auto at = tenants_.find(tenant);
  return at == tenants_.end() ? others_ : at->second;
}

// Reasons that concern every job come first, then those of this job, then those of its tenant, and
// last the memory: the first sentence is the one that the user can act upon.
OrRefused<Grant> Admission::admit(const control::CreateJob& wanted,
                                  const SwitchUsage& usage) const {
  if (draining_) return refuse(Refusal::kDraining, "this switch takes no new jobs");
  if (usage.jobs >= max_jobs_) {
    return refuse(Refusal::kMemory, "as many jobs as this switch may have (jobs.max) are there");
  }
  if (auto fine = check_children(wanted.children, wanted.rails, shape_.address); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  const TenantQuota quota = quota_of(wanted.tenant);
  const Usage own = usage.of(wanted.tenant);
  if (const uint32_t missing = wanted.formats_least & ~shape_.formats; missing != 0) {
    return refuse(Refusal::kShape, "the job needs the formats " + control::format_list(missing) +
                                       " too, and this switch adds up " +
                                       control::format_list(shape_.formats) + " only");
  }
  if (wanted.lanes_least > shape_.max_lanes) {
    return refuse(Refusal::kShape, "packets of " + number(wanted.lanes_least) +
                                       " lanes at least; this switch takes " +
                                       number(shape_.max_lanes));
  }
  if (own.jobs >= quota.max_jobs) {
    return refuse(Refusal::kQuota, "tenant " + wanted.tenant + " has " + number(own.jobs) +
                                       " jobs and may have " + number(quota.max_jobs) + "; " +
                                       raised_by(wanted.tenant, "max_jobs"));
  }
  const uint32_t lanes = std::min(wanted.lanes_wanted, shape_.max_lanes);
  // Slots::bytes_for grows evenly, so how slots are spread over shards does not matter.
  const uint64_t each = Slots::bytes_for(1, lanes);
  const uint64_t of_quota = left(quota.max_slot_bytes, own.slot_bytes);
  const uint64_t of_switch = left(shape_.slot_bytes, usage.slot_bytes);
  if (of_quota / each < wanted.slots_least) {
    return refuse(Refusal::kQuota,
                  memory_words(wanted, lanes, of_quota, ("to tenant " + wanted.tenant).c_str()) +
                      "; " + raised_by(wanted.tenant, "slot_memory"));
  }
  if (of_switch / each < wanted.slots_least) {
    return refuse(Refusal::kMemory, memory_words(wanted, lanes, of_switch, "in the switch"));
  }
  const uint64_t fit = std::min(of_quota, of_switch) / each;
  const auto slots = static_cast<uint32_t>(std::min<uint64_t>(wanted.slots_wanted, fit));
  return Grant{slots, lanes, wanted.formats_wanted & shape_.formats, each * slots};
}

}  // namespace slime::net
