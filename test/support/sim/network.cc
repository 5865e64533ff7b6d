#include "test/support/sim/network.h"

#include <algorithm>

#include "test/support/sim/sim_rail.h"

namespace slime::sim {

std::unique_ptr<Rail> Network::open_rail(const RailCaps& caps, const RailModel& model) {
  core_.random.next();  // one for each rail: seeds that are known go on to mean the same run
  return std::unique_ptr<Rail>(new Rail(*this, caps, model));
}

void Network::advance_to(uint64_t time_ns) {
  while (core_.events.next_ns() <= time_ns) {
    const Event event = core_.events.pop();
    core_.now_ns = std::max(core_.now_ns, event.time_ns);
    handle(event);
  }
  core_.now_ns = std::max(core_.now_ns, time_ns);
}

bool Network::step() {
  while (!idle() && is_stale(core_.events.next())) core_.events.pop();
  if (idle()) return false;
  advance_to(std::max(core_.events.next_ns(), core_.now_ns));
  return true;
}

// What the event is for does not exist any more.
bool Network::is_stale(const Event& event) {
  if (event.is_of_write()) return core_.writes.find(event.name) == nullptr;
  if (event.kind != Event::Kind::kDeath) return core_.ends.find(event.name) == nullptr;
  const Rail* rail = rails_[event.name.index];
  return rail == nullptr || rail->epoch_ != event.name.generation;
}

void Network::handle(const Event& event) {
  if (is_stale(event)) return;
  const Index index = event.name.index;
  if (event.is_of_write()) return writes_.handle(event, core_.writes[index]);
  if (event.kind == Event::Kind::kDeath) return rails_[index]->kill(rails_[index]->model().death);
  Endpoint& end = core_.ends[index];
  if (event.kind == Event::Kind::kNotice) {
    const auto reason = static_cast<Failures::Reason>(event.payload >> 1);
    return failures_.fail(end, reason, (event.payload & 1) != 0);
  }
  if (!end.failed && !end.fenced) writes_.report_again(event, end);
}

void Network::reset(uint64_t seed) {
  core_.random = Random(seed);
  core_.now_ns = 0;
  core_.events.clear();
  core_.violations = {};
  core_.outcomes = {};
  writes_.reset();
  for (Endpoint& end : core_.ends) {
    if (!end.open) continue;
    end.sending.sent.clear();
    end.sending.withheld.clear();
    end.sending.outstanding = end.sending.reads = 0;
    end.arrivals.clear();
    end.disconnected = true;
    failures_.fail(end, true, make_error(Status::kRemote, 0, "the simulated network was reset"));
  }
  for (Rail* rail : rails_) {
    if (rail != nullptr) rail->reset();
  }
  core_.ends.order_free_places();
}

}  // namespace slime::sim
