// Whose key a connection must be signed with.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/hmac.h"

namespace slime::net {

struct KeyRing {
  SecretKey common;  // the operators'; where tenants have none of their own, theirs too
  std::optional<std::map<std::string, SecretKey>> tenants;

  bool wanted() const { return !common.empty(); }
  // Nobody's name is an operator's. nullptr: there is no such tenant.
  const SecretKey* of(const std::string& tenant) const {
    if (tenant.empty() || !tenants) return &common;
    const auto at = tenants->find(tenant);
    return at == tenants->end() ? nullptr : &at->second;
  }
};

// Who asks, as its signature has shown; without keys, as it says.
struct Caller {
  std::string tenant;  // empty: an operator, who may do everything
  bool is_operator() const { return tenant.empty(); }
  bool may_act_for(const std::string& other) const { return is_operator() || tenant == other; }
};

}  // namespace slime::net
