#include "tools/perf/hello_port.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace slime::perf {
namespace {

constexpr uint64_t kHelloLimitNs = 10'000'000'000;

uint64_t now_ns() { return SteadyClock::instance().now_ns(); }

}  // namespace

void HelloPort::add_to(std::vector<pollfd>* waited) const {
  waited->push_back({paused_ ? -1 : listener_.get(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) waited->push_back({visitor.wire.fd(), POLLIN, 0});
}

std::vector<Caller> HelloPort::look() {
  std::erase_if(visitors_, [this](Visitor& visitor) { return !stays(&visitor); });
  Error error;
  const Status status = accept_visitors(listener_, now_ns(), &error);
  paused_ = status != Status::kOk && status != Status::kAgain;
  return std::exchange(callers_, {});
}

void HelloPort::excuse(uint64_t away_ns) {
  const uint64_t now = now_ns();
  for (Visitor& one : visitors_) one.since_ns = std::min(now, one.since_ns + away_ns);
}

// slime-perf has no log: the error about ranks that are missing tells the number.
void HelloPort::note_stranger() { (void)strangers_.turned_away(now_ns()); }

std::vector<Visit> HelloPort::visits() const {
  std::vector<Visit> all;
  for (const Visitor& visitor : visitors_) all.push_back({visitor.from, visitor.since_ns});
  return all;
}

void HelloPort::drop_visit(size_t index) {
  const auto dropped = visitors_.begin() + static_cast<ptrdiff_t>(index);
  note_stranger();
  dropped->wire.abort();
  visitors_.erase(dropped);
}

Status HelloPort::admit(Accepted accepted, Error* /*error*/) {
  visitors_.push_back({Wire(std::move(accepted.fd)), accepted.peer, now_ns()});
  if (!stays(&visitors_.back())) visitors_.pop_back();
  return Status::kOk;
}

bool HelloPort::stays(Visitor* visitor) {
  const bool late = now_ns() >= visitor->since_ns + kHelloLimitNs;  // before the look
  std::vector<Frame> frames;
  const bool alive = visitor->wire.receive(&frames);
  if (!frames.empty() && frames[0].type == FrameType::kHello) {
    callers_.push_back({std::move(visitor->wire), std::move(frames[0].body)});
    return false;
  }
  if (alive && frames.empty() && !late) return true;
  note_stranger();
  return false;
}

}  // namespace slime::perf
