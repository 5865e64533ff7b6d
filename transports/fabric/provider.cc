#include "transports/fabric/provider.h"

#include <rdma/fabric.h>

#include "transports/fabric/symbols.h"

namespace slime::fabric {
namespace {

Error too_old(std::string_view provider, uint32_t version, const char* needed, const char* why) {
  return make_error(Status::kUnsupported, 0,
                    "libfabric: provider %.*s of version %s is not used: %s; install libfabric %s "
                    "or later",
                    static_cast<int>(provider.size()), provider.data(),
                    version_name(version).c_str(), why, needed);
}

}  // namespace

Result<Traits> traits_of(std::string_view provider, uint32_t version) {
  if (provider == "efa") {
    if (version < FI_VERSION(1, 18)) {
      return fail(too_old(provider, version, "1.18",
                          "it sends RDMA writes as messages, which the receiver copies"));
    }
    // FI_MORE is honoured from 1.22 on, but some doorbells were lost until 2.6.
    return Traits{.in_hardware = true, .more = version >= FI_VERSION(2, 6)};
  }
  if (provider == "shm") return Traits{.reads_peer_memory = true, .refuses_silently = true};
  if (provider.starts_with("tcp") || provider.starts_with("net")) {
    if (version < FI_VERSION(1, 18)) {
      return fail(too_old(provider, version, "1.18",
                          "it does not say how many bytes have arrived (fi_cq(3), \"len\")"));
    }
    return Traits{.delivery_complete = true};
  }
  const bool hardware = provider.starts_with("verbs");
  return Traits{.in_hardware = hardware, .delivery_complete = !hardware};
}

}  // namespace slime::fabric
