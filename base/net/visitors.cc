#include "base/net/visitors.h"

#include <poll.h>

#include <map>
#include <utility>

namespace slime {
namespace {

constexpr uint64_t kLineIntervalNs = 1'000'000'000;

struct Group {  // visitors from one address
  size_t count = 0;
  size_t oldest = 0;
};

bool connection_waits(const Fd& listener) {
  pollfd backlog{listener.get(), POLLIN, 0};
  return poll(&backlog, 1, 0) > 0;
}

}  // namespace

// Groups the visitors by address, without the port, and takes the largest group. Of groups of equal
// size it takes the one with the oldest visitor.
std::optional<size_t> visit_to_drop(std::span<const Visit> visits, uint64_t now_ns) {
  std::map<SocketAddress::Wire, Group> groups;
  const Group* largest = nullptr;
  for (size_t i = 0; i < visits.size(); ++i) {
    SocketAddress host = visits[i].from;
    host.set_port(0);
    Group& group = groups.try_emplace(host.pack(), Group{0, i}).first->second;
    ++group.count;
    const bool older = largest && group.count == largest->count && group.oldest < largest->oldest;
    if (!largest || group.count > largest->count || older) largest = &group;
  }
  if (!largest || now_ns < visits[largest->oldest].since_ns + VisitorPort::kGraceNs) return {};
  return largest->oldest;
}

// A place is freed only after a connection has been accepted, so that no visitor is dropped for
// nothing.
Status VisitorPort::accept_visitors(const Fd& listener, uint64_t now_ns, Error* error) {
  for (int i = 0; i < kAcceptsPerCall; ++i) {
    const std::vector<Visit> taken = visits();
    std::optional<size_t> dropped;
    if (taken.size() >= places()) {
      dropped = visit_to_drop(taken, now_ns);
      if (!dropped) return connection_waits(listener) ? Status::kAgain : Status::kOk;
    }
    Accepted accepted;
    Status status = accept_one(listener, &accepted, error);
    if (status == Status::kAgain) return Status::kOk;
    if (status == Status::kNoMemory && !taken.empty()) {
      // The process is out of descriptors, and visitors have some: one of them is dropped.
      if (const auto oldest = visit_to_drop(taken, now_ns)) drop_visit(*oldest);
      return Status::kAgain;
    }
    if (status != Status::kOk) return status;
    if (dropped) drop_visit(*dropped);
    status = admit(std::move(accepted), error);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

std::optional<std::string> StrangerLog::turned_away(uint64_t now_ns) {
  ++count_;
  if (now_ns < next_line_ns_) {
    ++unlogged_;
    return {};
  }
  next_line_ns_ = now_ns + kLineIntervalNs;
  const uint64_t unlogged = std::exchange(unlogged_, 0);
  if (unlogged == 0) return "";
  return "; " + std::to_string(unlogged) + " more were turned away without a line";
}

std::string StrangerLog::summary() const {
  if (count_ == 0) return "";
  return "; " + std::to_string(count_) +
         (count_ == 1 ? " stranger was turned away meanwhile"
                      : " strangers were turned away meanwhile");
}

}  // namespace slime
