// The endpoint of one channel, with a completion queue and an address vector of its own: closing it
// ends what its peer can do, and disturbs no other channel.
//
// Threads: one at a time.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <span>
#include <string>
#include <vector>

#include "transports/fabric/domain.h"

namespace slime::fabric {

// What an endpoint turned out to do.
struct EndpointCaps {
  bool lines_in_order = false;  // RailCaps::lines_in_order
  bool device_memory = false;   // the NIC uses CUDA memory itself, without copies
  bool reads = false;           // the NIC reads itself (Traits::reads)
};

// Places in the queues of an endpoint.
struct EndpointSizes {
  size_t completions = 0;
  // Of the NIC, if there is one; at most what the provider has, and 0: just that. A provider fills
  // the receive queue with buffers of an MTU each, though works need none: with efa's own size that
  // is tens of megabytes.
  size_t sends = 0, receives = 0;
};

class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(Endpoint&&) = default;
  Endpoint& operator=(Endpoint&& other) noexcept;
  static Result<Endpoint> open(const Domain& domain, const EndpointSizes& sizes);

  fid_ep* get() const { return endpoint_.get(); }
  fid_cq* completions() const { return completions_.get(); }
  const EndpointCaps& caps() const { return caps_; }
  // What a peer reaches it by, in the provider's own form.
  const std::vector<std::byte>& name() const { return name_; }

  // "Permission denied (13; provider efa: Remote access error, 5)"
  std::string describe(const Domain& domain, const fi_cq_err_entry& error) const;

  Result<fi_addr_t> add_peer(const Domain& domain, std::span<const std::byte> name);

 private:
  Result<void> create(const Domain& domain, const EndpointSizes& sizes);
  Result<void> enable(const Domain& domain);

  // In the order in which they need each other: they are closed the other way round.
  Handle<fid_av> addresses_;
  Handle<fid_cq> completions_;
  Handle<fid_ep> endpoint_;
  EndpointCaps caps_;
  std::vector<std::byte> name_;
};

// For fi_writemsg and fi_readmsg: one piece of memory at each end. The message has pointers to the
// arguments that are references or pointers here.
inline fi_msg_rma message_of(const iovec& here, void** description, const fi_rma_iov& there,
                             fi_addr_t peer, void* context) {
  fi_msg_rma message = {};
  message.msg_iov = &here;
  message.desc = description;
  message.iov_count = 1;
  message.addr = peer;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.context = context;
  return message;
}

}  // namespace slime::fabric
