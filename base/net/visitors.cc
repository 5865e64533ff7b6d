#include "base/net/visitors.h"

#include <poll.h>

#include <map>
#include <utility>

#include "base/log.h"

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
std::optional<size_t> visit_to_drop(std::span<const Visit> visits, uint64_t now_ns,
                                    uint64_t grace_ns) {
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
  if (!largest || now_ns < visits[largest->oldest].since_ns + grace_ns) return {};
  return largest->oldest;
}

// A place is freed only after a connection has been accepted, so that no visitor is dropped for
// nothing.
Status VisitorPort::accept_visitors(const Fd& listener, uint64_t now_ns, Error* error) {
  for (int i = 0; i < kAcceptsPerCall; ++i) {
    const std::vector<Visit> taken = visits();
    std::optional<size_t> dropped;
    if (taken.size() >= kPlaces) {
      dropped = visit_to_drop(taken, now_ns);
      if (!dropped) return connection_waits(listener) ? Status::kAgain : Status::kOk;
    }
    Accepted accepted;
    Status status = accept_one(listener, &accepted, error);
    if (status == Status::kNoMemory) return wait_for_resources(listener, taken, now_ns, *error);
    if (status == Status::kOk || status == Status::kAgain) trouble_.clear();
    if (status == Status::kAgain) return Status::kOk;
    if (status != Status::kOk) return status;
    if (dropped) drop_visit(*dropped);
    status = admit(std::move(accepted), error);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

// accept4() fails for want of a descriptor even if no connection waits. If one does, a visitor
// gives its descriptor up for it.
Status VisitorPort::wait_for_resources(const Fd& listener, std::span<const Visit> taken,
                                       uint64_t now_ns, const Error& why) {
  if (!connection_waits(listener)) {
    trouble_.clear();
    return Status::kOk;
  }
  if (const auto oldest = visit_to_drop(taken, now_ns)) drop_visit(*oldest);
  if (trouble_.empty() && now_ns >= next_line_ns_) {
    SLIME_WARN("%s; connections wait meanwhile", why.what.c_str());
    next_line_ns_ = now_ns + kLineIntervalNs;
  }
  trouble_ = why.what;
  return Status::kAgain;
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
