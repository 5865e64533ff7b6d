// How channels are set up, and what their owners call.
#include <algorithm>
#include <cstring>

#include "test/support/sim/sim_rail.h"
#include "transports/channel_common.h"

namespace slime::sim {
namespace {

// The nonce keeps out a channel that used the same place of the pool before.
ChannelAddress address_of(const Endpoint& end) {
  ChannelAddress address{};
  std::memcpy(address.data(), &end.name, sizeof end.name);
  std::memcpy(address.data() + sizeof end.name, &end.nonce, sizeof end.nonce);
  return address;
}

}  // namespace

// Set-up and end.

Channel::Channel(Network& network, Rail& rail, const ChannelOptions& options)
    : network_(network), end_(network.core_.ends.take()) {
  Random& random = network.core_.random;
  end_.rail = &rail;
  end_.options = options;
  end_.nonce = random.next();
  const uint32_t retries = rail.model().connect_retries;
  end_.retries_left = retries == 0 ? 0 : static_cast<uint32_t>(random.up_to(retries));
  end_.peer = {};
  end_.peer_label = "sim:unknown";
  end_.open = true;
  end_.paired = end_.connected = end_.disconnected = end_.failed = end_.abrupt =
      end_.failure_returned = end_.fenced = end_.refused = end_.armed = false;
  end_.sending.outstanding = end_.sending.reads = end_.sending.in_flight = 0;
  end_.sending.unreported_bytes = end_.sending.last_arrival_ns = 0;
  end_.counters = &counters;
}

Channel::~Channel() {
  network_.run_due();
  network_.failures_.close(end_);
  while (!end_.arrivals.empty()) network_.writes_.drop_arrival(end_);
  end_.sending.sent.clear();
  end_.sending.withheld.clear();
  end_.open = false;
  network_.core_.ends.give_back(end_);
}

ChannelAddress Channel::address() const { return address_of(end_); }

Status Channel::connect(const ChannelAddress& address) {
  network_.run_due();
  if (!end_.connected && !end_.paired) {
    const Status status = end_.failed ? end_.error.status : pair_with(address);
    if (status != Status::kOk) return status;
  }
  if (!end_.connected && end_.retries_left > 0) return --end_.retries_left, Status::kAgain;
  end_.connected = true;
  return Status::kOk;
}

Status Channel::pair_with(const ChannelAddress& address) {
  Name name;
  std::memcpy(&name, address.data(), sizeof name);
  Endpoint* peer = network_.core_.ends.find(name);
  if (peer == nullptr || peer == &end_ || !peer->open || address != address_of(*peer)) {
    return fail(
        make_error(Status::kRemote, 0,
                   "connection refused: the address names no open channel of this network"));
  }
  if (peer->peer != Name{} && peer->peer != end_.name) {
    return fail(make_error(Status::kRemote, 0,
                           "connection refused: channel %u on rail %s has another peer",
                           peer->name.index, peer->rail->caps().name.c_str()));
  }
  if (peer->options.active == end_.options.active) {
    ++network_.core_.violations.bad_calls;
    return fail(make_error(Status::kInvalid, 0, "both ends of a channel are %s",
                           end_.options.active ? "active" : "passive"));
  }
  if (ChannelDepth(peer->rail->caps(), peer->options.depth).writes !=
      ChannelDepth(end_.rail->caps(), end_.options.depth).writes) {
    ++network_.core_.violations.bad_calls;
    return fail(make_error(Status::kInvalid, 0, "the ends of a channel have depths of %u and %u",
                           end_.options.depth, peer->options.depth));
  }
  end_.peer = peer->name;
  end_.peer_label = "sim:" + peer->rail->caps().name + "#" + std::to_string(peer->name.index);
  for (const Rail* rail : {end_.rail, peer->rail}) {
    if (!rail->dead()) continue;
    if (rail->silent()) return Status::kAgain;
    network_.failures_.fail(end_, Failures::Reason::kPathDied, true);
    return end_.error.status;
  }
  if (peer->peer != end_.name) return Status::kAgain;
  end_.paired = peer->paired = true;
  return Status::kOk;
}

// The data path.

Status Channel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  end_.armed = false;
  network_.run_due();
  if (end_.failed) return end_.error.status;
  if (!end_.connected) {
    ++network_.core_.violations.bad_calls;
    return fail(make_error(Status::kInvalid, 0, "posted before it was connected"));
  }
  const RailCaps& caps = end_.rail->caps();
  const CallCosts& costs = end_.rail->model().costs;
  const Sending& sending = end_.sending;
  const ChannelDepth depth(caps, end_.options.depth);
  const size_t count =
      count_that_fit(works.first(std::min<size_t>(works.size(), caps.max_batch)),
                     depth.writes - sending.outstanding, depth.reads - sending.reads);
  if (works.empty()) return Status::kOk;
  if (count == 0) {
    counters.futile_posts.add();
    network_.advance(costs.refused_ns);
    return Status::kOk;
  }
  counters.doorbells.add();
  network_.advance(costs.doorbell_ns + count * costs.post_ns);
  if (end_.failed) return end_.error.status;  // it failed while the processor was at it
  for (; *taken < count; ++*taken) {
    if (!network_.writes_.post(end_, works[*taken])) return end_.error.status;
  }
  return Status::kOk;
}

size_t Channel::collect(std::span<Done> done) {
  size_t count = 0;
  const bool sent_lost = end_.fenced || (end_.failed && end_.abrupt);
  while (count < done.size() && !end_.sending.sent.empty() && !sent_lost) {
    const Sent sent = end_.sending.sent.front();
    end_.sending.sent.pop();
    if (!sent.repeat) --end_.sending.outstanding;
    done[count++] = sent.refused ? slime::refused(sent.cookie) : slime::sent(sent.cookie);
  }
  while (count < done.size() && !end_.arrivals.empty()) {
    if (network_.writes_.report(end_, &done[count])) ++count;
  }
  return count;
}

Status Channel::poll(std::span<Done> done, size_t* count) {
  end_.armed = false;
  network_.advance(end_.rail->model().costs.poll_ns);
  counters.polls.add();
  *count = end_.failure_returned && !end_.fenced ? 0 : collect(done);
  if (*count > 0) return Status::kOk;
  counters.empty_polls.add();
  if (!end_.failed || end_.fenced) return Status::kOk;
  // What had arrived comes first; without room for it, the failure has to wait.
  if (!end_.failure_returned && done.empty() && !end_.arrivals.empty()) return Status::kOk;
  end_.failure_returned = true;
  return end_.error.status;
}

Status Channel::arm() {
  network_.run_due();
  if (end_.options.poller == nullptr) return Status::kUnsupported;
  if (!end_.connected && !end_.failed) return Status::kInvalid;
  if (end_.fenced || end_.failure_returned) return end_.error.status;
  if (end_.something()) return Status::kAgain;
  end_.armed = true;
  return Status::kOk;
}

size_t Poller::poll(std::span<uint64_t> tags) {
  network_.run_due();
  const Index all = network_.core_.ends.size();
  size_t count = 0;
  for (Index looked = 0; looked < all && count < tags.size(); ++looked) {
    next_ = next_ + 1 < all ? next_ + 1 : 0;
    Endpoint& end = network_.core_.ends[next_];
    if (!end.open || end.options.poller != this || !end.armed || !end.something()) continue;
    end.armed = false;
    tags[count++] = end.options.tag;
  }
  return count;
}

}  // namespace slime::sim
