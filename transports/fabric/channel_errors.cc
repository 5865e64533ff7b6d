#include "transports/fabric/channel_errors.h"

#include <cinttypes>

#include "transports/channel_common.h"
#include "transports/fabric/rail.h"

namespace slime::fabric {
namespace {

const char* advice(int code) {
  switch (code) {
    case FI_EACCES:
    case FI_EKEYREJECTED:
    case FI_EPERM:
      return "the peer refused the address or key: it has closed, or deregistered that memory; "
             "look at its log first";
    case FI_ECONNABORTED:
    case FI_ECONNRESET:
    case FI_ECANCELED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_EHOSTUNREACH:
    case FI_ETIMEDOUT:
      return "the peer does not answer: see whether that process and host live, then check the "
             "network of this NIC";
    default:
      return "see dmesg on both hosts, and set FI_LOG_LEVEL=warn for what the provider says";
  }
}

}  // namespace

Error completion_error(const std::string& description, int code, uint64_t undelivered_works) {
  return make_error(Status::kRemote, code, "%s%s; %s", description.c_str(),
                    undelivered(undelivered_works).c_str(), advice(code));
}

Error write_error(const Domain& domain, long code, const Work& work) {
  Error error = fabric_error(domain.symbols(), code, "fi_writemsg of %u bytes failed", work.length);
  error.what += std::string("; ") + advice(error.code);
  return error;
}

Error work_error(const FabricRail& rail, const Work& work) {
  return make_error(Status::kInvalid, 0,
                    "a work of %u bytes at %p is not inside memory registered with key "
                    "0x%" PRIx64 ", or longer than %" PRIu64 ", or its remote key 0x%" PRIx64
                    " has more than %zu bytes, or its target wraps; nothing was sent",
                    work.length, static_cast<const void*>(work.local), work.local_key,
                    rail.caps().max_message_bytes, work.remote_key,
                    rail.domain().info().domain_attr->mr_key_size);
}

Error refusal_error(const Domain& domain, uint64_t refused) {
  return make_error(Status::kRemote, 0,
                    "provider %s of this end refused %" PRIu64
                    " of the peer's works, as their address or key is not of registered memory; "
                    "look at the peer's log",
                    domain.provider().c_str(), refused);
}

}  // namespace slime::fabric
