// What a libfabric channel says when it fails: where, what was under way, the exact code, what to
// try.
#include <cinttypes>
#include <utility>

#include "settings/times.h"
#include "transports/channel_common.h"
#include "transports/fabric/channel.h"
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

std::string FabricChannel::where() const {
  return "rail " + rail_.caps().name + (peer_name_.empty() ? "" : " to " + peer_name_);
}

// A NIC may still write completions of what it has written.
void FabricChannel::fail_with(Error error) {
  if (state_ >= State::kBroken) return;
  failure_ = std::move(error);
  announce_failure();
  state_ = State::kBroken;
  broken_ns_ = steady_now_ns() + (rail_.domain().traits().in_hardware ? times::kFenceDrain : 0);
}

Error FabricChannel::entry_error(const fi_cq_err_entry& entry) const {
  return make_error(Status::kRemote, entry.err, "%s%s; %s",
                    endpoint_.describe(rail_.domain(), entry).c_str(),
                    undelivered(undelivered_works()).c_str(), advice(entry.err));
}

Error FabricChannel::post_error(long code, const Work& work) const {
  Error error = fabric_error(rail_.domain().symbols(), code, "%s: fi_writemsg of %u bytes failed",
                             where().c_str(), work.length);
  error.what += std::string("; ") + advice(error.code);
  return error;
}

Error FabricChannel::work_error(const Work& work) const {
  return make_error(Status::kInvalid, 0,
                    "%s: a work of %u bytes at %p is not inside memory registered with key "
                    "0x%" PRIx64 ", or longer than %" PRIu64 ", or its remote key 0x%" PRIx64
                    " has more than %zu bytes, or its target wraps; nothing was sent",
                    where().c_str(), work.length, static_cast<const void*>(work.local),
                    work.local_key, rail_.caps().max_message_bytes, work.remote_key,
                    rail_.domain().info().domain_attr->mr_key_size);
}

Error FabricChannel::refusal_error(uint64_t refused) const {
  return make_error(Status::kRemote, 0,
                    "provider %s of this end refused %" PRIu64
                    " of the peer's works, as their address or key is not of registered memory; "
                    "look at the peer's log",
                    rail_.domain().provider().c_str(), refused);
}

}  // namespace slime::fabric
