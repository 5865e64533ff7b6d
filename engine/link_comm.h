// The common part of the two ends of a link: the link, the registered memory of its records, and
// its progress.
//
// Threads: those of a comm, and the housekeeper while no request is open (comm_progress.h).
#pragma once

#include <string>
#include <utility>

#include "engine/comm.h"
#include "engine/comm_progress.h"
#include "engine/link/link.h"

namespace slime {

template <typename Interface>
class LinkComm : public Interface, protected LinkEnd, protected CommProgress {
 public:
  Device& device() const override { return link_.context().device; }
  const Error& failure() const override { return link_.context().failure(); }
  std::string peer_name() const override { return link_.context().peer; }
  const Link& link() const { return link_; }
  Status progress() override {
    const Call call(*this);
    return move();
  }

 protected:
  // Takes the channels and the name of the peer out of `parts`.
  LinkComm(Fabric& fabric, Device& device, LinkParts& parts, RegisteredBuffer inbox,
           RegisteredBuffer outbox)
      : inbox_(std::move(inbox)),
        outbox_{std::move(outbox), parts.peer_inbox},
        eager_max_(parts.eager_max),
        link_(fabric, device, std::move(parts.peer), parts.active, *this, parts.traffic_class) {
    for (LinkChannel& channel : parts.channels) link_.add_rail(std::move(channel));
    link_.warm_up();
  }

  // A link of several rails is moved even while it is idle. begin_idle_progress() stands at the end
  // of the derived constructor.
  bool progresses_when_idle() const {
    return link_.context().fabric.progresses_idle_comms() && link_.rails().count() > 1;
  }
  void begin_idle_progress() {
    if (progresses_when_idle())
      progress_when_idle(link_.rails().count(), device().properties().near);
  }

  virtual Status move() = 0;  // progress(), for a caller that holds a Call
  bool has_work() const override { return link_.has_work(); }
  void advance() override { (void)move(); }

  RegisteredBuffer inbox_;  // written by the peer; records.h has its layout
  const Outbox outbox_;     // records under way to the peer
  const uint32_t eager_max_;
  Link link_;  // last: it ends before the memory that it uses
};

}  // namespace slime
