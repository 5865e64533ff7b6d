// Which entry of a port's GID table its queue pairs use.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "settings/settings.h"

namespace slime::verbs {

using Gid = std::array<uint8_t, 16>;

enum class GidType : uint8_t { kUnknown, kInfiniBand, kRoceV1, kRoceV2 };

struct GidEntry {
  int index = 0;
  Gid gid = {};
  GidType type = GidType::kUnknown;
};

// What the user asked for: NCCL_IB_GID_INDEX, NCCL_IB_ROCE_VERSION_NUM, NCCL_IB_ADDR_FAMILY and
// NCCL_IB_ADDR_RANGE, or ours (settings.def).
struct GidWish {
  int index = -1;  // -1: any
  GidType type = GidType::kRoceV2;
  bool ipv6 = false;
  std::optional<Gid> prefix;  // an IPv4 one is mapped: ::ffff:a.b.c.d
  int prefix_bits = 0;

  // An InfiniBand port has no RoCE types and address families.
  static GidWish of_infiniband(const GidWish& wish) {
    GidWish its;
    its.index = std::max(wish.index, 0);  // the first has the port's GUID (IBTA, 4.1.1)
    its.type = GidType::kInfiniBand;
    return its;
  }
};
Result<GidWish> parse_wish(const Settings& settings);

// The best of what is there, in this order: of the wished prefix, not link-local, of the wished
// address family and type, and the lowest index. *warning names a wish for an index or a prefix
// that cannot be met; else it is untouched. An empty table is an error.
Result<GidEntry> choose_gid(const std::vector<GidEntry>& table, const GidWish& wish,
                            std::string* warning);

bool is_ipv4(const Gid& gid);
bool is_link_local(const Gid& gid);
std::string to_string(const Gid& gid);
// What /sys/class/infiniband/D/ports/P/gid_attrs/types/I says.
GidType gid_type_of(const std::string& text);

}  // namespace slime::verbs
