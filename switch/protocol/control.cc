#include "switch/protocol/control.h"

#include "base/text.h"

namespace slime::control {

bool is_tenant_name(std::string_view name) {
  return name.size() <= kMaxTenantBytes && is_plain_name(name);
}

std::string shard_range(const SocketAddress& first, uint32_t shards) {
  const std::string text = first.to_string();
  if (shards <= 1 || first.port() == 0) return text;
  return text + "-" + std::to_string(first.port() + shards - 1);
}

std::string branch_list(uint32_t bits) {
  std::string list;
  for (uint32_t branch = 0; branch < sap::kMaxChildren; ++branch) {
    if ((bits >> branch & 1) == 0) continue;
    list += (list.empty() ? "" : ", ") + std::to_string(branch);
  }
  return list;
}

const char* name_of(sap::Format format) {
  constexpr const char* kNames[] = {"i32", "u32", "i16", "i8", "i64", "f32", "u8", "u64"};
  return kNames[static_cast<size_t>(format) & 7];
}

std::string format_list(uint32_t formats) {
  std::string list;
  for (uint8_t i = 0; i < 8; ++i) {
    const auto format = static_cast<sap::Format>(i);
    if (!sap::has_format(formats, format)) continue;
    list += (list.empty() ? "" : ", ") + std::string(name_of(format));
  }
  return list.empty() ? "none" : list;
}

const char* name_of(Type type) {
  constexpr const char* kNames[] = {
      "greet",       "challenge",     "create a job", "renew a lease",  "close a job",
      "fence a job", "report",        "drain",        "grant of a job", "state of a job",
      "done",        "report's text", "refusal",      "join a tree",    "wait for a tree"};
  static_assert(std::size(kNames) == std::variant_size_v<Message>);
  const auto index = static_cast<size_t>(type) - 1;
  return index < std::size(kNames) ? kNames[index] : "?";
}

const char* name_of(Refusal reason) {
  constexpr const char* kNames[] = {"malformed", "unauthorized", "sequence", "full",
                                    "draining",  "quota",        "memory",   "shape",
                                    "no_job",    "busy",         "internal", "forbidden"};
  const auto index = static_cast<size_t>(reason) - 1;
  return index < std::size(kNames) ? kNames[index] : "?";
}

}  // namespace slime::control
