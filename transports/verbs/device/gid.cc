#include "transports/verbs/device/gid.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>

#include "base/interfaces/address_range.h"

namespace slime::verbs {
namespace {

bool is_zero(const Gid& gid) {
  return std::ranges::all_of(gid, [](uint8_t byte) { return byte == 0; });
}

bool in_range_of(const GidWish& wish, const Gid& gid) {
  return !wish.prefix || AddressRange{*wish.prefix, wish.prefix_bits}.has(gid);
}

Result<void> parse_range(const std::string& text, GidWish* wish) {
  const auto range = AddressRange::parse(text);
  if (!range) {
    return fail(make_error(Status::kConfig, 0,
                           "%s=%s is no range of addresses; write one like 10.1.0.0/16 or fd00::/8",
                           variable_of("NCCL_SLIME_ADDR_RANGE").c_str(), text.c_str()));
  }
  wish->prefix = range->prefix;
  wish->prefix_bits = range->bits;
  return {};
}

}  // namespace

Result<GidWish> parse_wish(const Settings& settings) {
  GidWish wish;
  wish.index = settings.gid_index;
  wish.type = settings.roce_version == 1 ? GidType::kRoceV1 : GidType::kRoceV2;
  wish.ipv6 = settings.addr_family == "AF_INET6";
  if (!settings.addr_range.empty()) {
    if (auto parsed = parse_range(settings.addr_range, &wish); !parsed) return fail(parsed.error());
  }
  return wish;
}

Result<GidEntry> choose_gid(const std::vector<GidEntry>& table, const GidWish& wish,
                            std::string* warning) {
  const auto usable = [](const GidEntry& entry) { return !is_zero(entry.gid); };
  if (wish.index >= 0) {
    const auto asked = std::ranges::find(table, wish.index, &GidEntry::index);
    if (asked != table.end() && usable(*asked)) return *asked;
    *warning = "GID index " + std::to_string(wish.index) + " (" +
               variable_of("NCCL_SLIME_GID_INDEX") + ") is not in use; another one is taken";
  }
  const auto rank = [&](const GidEntry& entry) {
    return std::tuple(in_range_of(wish, entry.gid), !is_link_local(entry.gid),
                      is_ipv4(entry.gid) != wish.ipv6, entry.type == wish.type, -entry.index);
  };
  const GidEntry* best = nullptr;
  for (const GidEntry& entry : table) {
    if (usable(entry) && (best == nullptr || rank(entry) > rank(*best))) best = &entry;
  }
  if (best == nullptr) {
    return fail(make_error(Status::kConfig, 0,
                           "its GID table is empty; give its interface an "
                           "address and bring it up"));
  }
  if (!in_range_of(wish, best->gid)) {
    *warning = "no GID is in the range of " + variable_of("NCCL_SLIME_ADDR_RANGE") + "; " +
               to_string(best->gid) + " is taken";
  }
  return *best;
}

bool is_ipv4(const Gid& gid) {
  return std::equal(kMappedIpv4.begin(), kMappedIpv4.begin() + 12, gid.begin());
}

bool is_link_local(const Gid& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

std::string to_string(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  (void)::inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  return text;
}

GidType gid_type_of(const std::string& text) {
  if (text == "RoCE v2") return GidType::kRoceV2;
  if (text == "IB/RoCE v1") return GidType::kRoceV1;
  return GidType::kUnknown;
}

}  // namespace slime::verbs
