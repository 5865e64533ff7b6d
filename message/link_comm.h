// The common part of comms: a link with one end over it, and its progress.
//
// Threads: those of a comm, and the housekeeper while no request is open (comm_progress.h).
#pragma once

#include <string>
#include <utility>

#include "link/link.h"
#include "message/comm.h"
#include "message/comm_progress.h"
#include "message/message_owner.h"

namespace slime {

static_assert(kEagerBuffers + kCtsEntries <= kAgainRoom, "what a comm submits again");

template <typename Interface>
class LinkComm : public Interface, protected CommProgress {
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
  LinkComm(Devices& devices, Device& device, LinkParts parts)
      : eager_max_(MessageWords::unpack(parts.words).eager_max),
        link_(devices, device, std::move(parts)) {}

  // A link of several rails is moved even while it is idle.
  bool progresses_when_idle() const {
    return link_.context().devices.progresses_idle_comms() && link_.rails().count() > 1;
  }
  // `end` has the link's arrivals from now on. Call it at the end of the derived constructor.
  void begin(LinkEnd& end) {
    link_.serve(end);
    if (progresses_when_idle())
      progress_when_idle(link_.rails().count(), device().properties().near);
  }

  // At the end of a call, which has begun or finished a request, has to be repeated, or has failed.
  void note(bool got_on, Status status) {
    if (got_on) {
      achieved();
    } else if (status == Status::kOk) {
      waited();
    }
  }

  virtual Status move() = 0;  // progress(), for a caller that holds a Call
  bool has_work() const override { return link_.has_work(); }
  void advance() override { (void)move(); }

  const uint32_t eager_max_;
  Link link_;
};

}  // namespace slime
