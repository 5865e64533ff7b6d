#include "test/engine/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "test/engine/schedule/world.h"

namespace slime::test {
namespace {

constexpr size_t kLinkNumbers = 12;  // a multiple of any number of rails
constexpr std::byte kReleased{0x55}, kScribble{0xaa};
constexpr uint64_t kDeadlineNs = 20'000'000'000;

}  // namespace

// One call on the sending side. Messages of one tag go in their order; tags in any.
bool ScheduleWorld::Parts::send_some(SendCommImpl& sender, bool* failed) {
  const size_t first = below(messages.size());
  const bool wants_test = chance(50);
  std::array<bool, 8> held = {};  // tags with an older message that has not been issued
  for (Message& message : messages) {
    if (message.done) continue;
    const size_t position = static_cast<size_t>(&message - messages.data());
    if (message.issued) {
      if (!wants_test) continue;
      bool done = false;
      size_t bytes = 0;
      if (sender.test(message.request, &done, &bytes) != Status::kOk) *failed = true;
      if (done && bytes != message.bytes) violate("test of a send reports a wrong size");
      if (done) {  // the memory is the user's again
        message.done = true;
        std::fill_n(&source[message.send_offset], message.bytes, kScribble);
      }
      return done;
    }
    const auto tag = static_cast<size_t>(message.tag);
    if (held[tag] || (position < first && chance(50))) {
      held[tag] = true;
      continue;
    }
    const Status status = sender.isend(&source[message.send_offset], message.bytes, message.tag,
                                       source_region, &message.request);
    if (status != Status::kOk) *failed = true;
    message.issued = message.request != nullptr;
    return message.issued;
  }
  return false;
}

bool ScheduleWorld::Parts::receive_some(RecvCommImpl& receiver, bool* failed) {
  const bool wants_test = chance(60);
  for (Group& group : groups) {
    if (group.done) continue;
    if (group.issued) {
      if (!wants_test) continue;
      bool done = false;
      size_t* const sizes = group.flushing ? nullptr : group.sizes.data();
      if (receiver.test(group.request, &done, sizes) != Status::kOk) *failed = true;
      const bool flushed = done && (group.flushing || !flush(receiver, group, failed));
      if (flushed) check_received(group);
      if (!done && chance(30)) continue;  // not only the oldest
      return done;
    }
    std::array<Receive, kMaxReceives> receives;
    for (size_t i = 0; i < group.parts.size(); ++i) {
      const Group::Part& part = group.parts[i];
      receives[i] = {&target[part.offset], part.capacity, part.tag, target_region};
    }
    const Status status =
        receiver.irecv({receives.data(), group.parts.size()}, false, &group.request);
    if (status != Status::kOk) *failed = true;
    group.issued = group.request != nullptr;
    return group.issued;
  }
  return false;
}

// What has arrived in device memory is looked at once it has been flushed. False: it needs none.
bool ScheduleWorld::Parts::flush(RecvCommImpl& receiver, Group& group, bool* failed) {
  const void* const place = &target[group.parts.front().offset];
  group.request = nullptr;
  *failed |= receiver.flush(place, target_region, &group.request) != Status::kOk;
  group.flushing = group.request != nullptr;
  return group.flushing;
}

// The n-th send of a tag belongs to the n-th receive of that tag, and they were made in that order.
void ScheduleWorld::Parts::check_received(Group& group) {
  group.done = true;
  for (size_t p = 0; p < group.parts.size(); ++p) {
    const Group::Part& part = group.parts[p];
    const Message& message = messages[part.message];
    if (group.sizes[p] != message.bytes) violate("test of a receive reports a wrong size");
    for (size_t i = 0; i < part.capacity; ++i) {
      const bool inside = i < message.bytes;
      const std::byte wanted = inside ? pattern_byte(message.pattern, i) : kPoison;
      if (target[part.offset + i] != wanted) {
        violate(inside ? "a received byte is wrong" : "a byte behind the message was written");
      }
    }
    // The user goes on with the memory: whatever lands there from now on is a late write.
    std::fill_n(&target[part.offset], part.capacity, kReleased);
    std::fill_n(&expected[part.offset], part.capacity, kReleased);
  }
}

void ScheduleWorld::Parts::check_memory() {
  for (sim::Rail* rail : to.rails) rail->show_device();
  for (const Group& group : groups) {
    if (group.done) continue;  // an unfinished receive may be partly written
    for (const Group::Part& part : group.parts) {
      std::copy_n(&target[part.offset], part.capacity, &expected[part.offset]);
    }
  }
  if (std::memcmp(target.data(), expected.data(), target_used) != 0) {
    violate("memory was written that no receive was waiting for");
  }
  if (network.violations().total() != 0) violate("a rail was misused");
}

bool ScheduleWorld::Parts::sends_done() const {
  return std::all_of(messages.begin(), messages.end(), [](const auto& m) { return m.done; });
}

bool ScheduleWorld::Parts::receives_done() const {
  return std::all_of(groups.begin(), groups.end(), [](const auto& g) { return g.done; });
}

// One of the rails that may die does so, or works again.
void ScheduleWorld::Parts::turn_a_rail() {
  --turns_left;
  const size_t i = below(report.deaths);
  for (sim::Rail* rail : {from.rails[i], to.rails[i]}) {
    if (rail->dead()) return rail->revive();
  }
  (chance(50) ? from : to).rails[i]->kill(chance(25) ? sim::Death::kSilent : sim::Death::kNoticed);
}

// From now on all rails work, and one never died. Each that had died returns to the link.
void ScheduleWorld::Parts::expect_all_rails_back(SimLink& link) {
  const auto complete = [this](const Link& end) { return end.rails().up_count() == report.rails; };
  const uint64_t end_ns = network.now_ns() + kDeadlineNs;
  while (!complete(link.sender->link()) || !complete(link.receiver->link())) {
    for (size_t i = 0; i < report.rails; ++i) {
      for (sim::Rail* rail : {from.rails[i], to.rails[i]}) {
        if (rail->dead()) rail->revive();
      }
    }
    if (link.sender->progress() != Status::kOk || link.receiver->progress() != Status::kOk) {
      return violate("the link fails though its rails work again");
    }
    network.advance(1'000 + below(20'000));
    if (network.now_ns() > end_ns) return violate("a rail that works again does not return");
  }
}

void ScheduleWorld::Parts::drive(SimLink& link) {
  bool send_failed = false, receive_failed = false;
  uint32_t idle = 0;
  while (!(send_failed || sends_done()) || !(receive_failed || receives_done())) {
    bool moved = false;
    const bool sender_runs = network.now_ns() >= stopped_until_ns[0];
    const bool receiver_runs = network.now_ns() >= stopped_until_ns[1];
    if (sender_leaves && link.sender && !send_failed && sends_done() && link.sender->settled()) {
      link.sender.reset();
    }
    if (link.sender && sender_runs && !send_failed) moved |= send_some(*link.sender, &send_failed);
    if (receiver_runs && !receive_failed) moved |= receive_some(*link.receiver, &receive_failed);
    // An end that has nothing outstanding is needed only to settle the death of a rail.
    const bool sender_settles = report.deaths > 0 || sender_leaves;
    if (link.sender && sender_runs && sender_settles && sends_done()) {
      (void)link.sender->progress();
    }
    if (receiver_runs && report.deaths > 0 && receives_done()) (void)link.receiver->progress();
    idle = moved ? 0 : idle + 1;
    if (chance(50)) network.advance(below(2000));
    if (turns_left > 0 && chance(2)) turn_a_rail();
    if (chance(5)) to.rails[below(kRails)]->show_device(below(3));
    // As long as a try to get a rail back may take, and longer.
    if (turns_left > 0 && chance(1))
      stopped_until_ns[below(2)] = network.now_ns() + below(3'000'000);
    if (turns_left > 0 && chance(5)) network.advance(below(60'000));
    // Nothing left to happen by itself: only time-outs can move things on.
    if (idle > 20 && !network.step()) network.advance(500'000);
    if (network.now_ns() > kDeadlineNs) return violate("the link hangs");
  }
  if (!link.sender) {
    // The end of the link is not the end of what had arrived.
    for (int i = 0; i < 1000 && !receives_done(); ++i) {
      (void)receive_some(*link.receiver, &receive_failed);
      network.advance(1'000);
    }
    if (report.deaths < report.rails && !receives_done()) violate("lost when its sender left");
    return;
  }
  report.failed = send_failed || receive_failed;
  if (report.failed && report.deaths < report.rails) {
    violate("an error though a rail was left");
    const Error& error = send_failed ? link.sender->failure() : link.receiver->failure();
    report.violation += ": " + error.what;
  }
}

ScheduleWorld::ScheduleWorld() : parts_(std::make_unique<Parts>()) {}
ScheduleWorld::~ScheduleWorld() = default;

ScheduleReport ScheduleWorld::run(uint64_t seed) {
  Parts& world = *parts_;
  world.random = sim::Random(seed);
  world.report = ScheduleReport();
  world.network.reset(seed);
  world.configure_rails();
  world.make_messages();
  const bool device_memory = world.target_region == world.device_region;
  const auto drawn =
      std::array<uint32_t, 3>{world.many_small ? 256U : 0, 256, 4096}[world.below(3)];
  const uint32_t eager_max = device_memory ? 0 : drawn;
  for (const Message& message : world.messages) world.report.eager += message.bytes <= eager_max;
  // The numbers of links spread them over rails: each seed starts at the same one.
  for (SimHost* host : {&world.from, &world.to}) {
    while (host->device().number_link() % kLinkNumbers != kLinkNumbers - 1) continue;
  }
  {
    SimLink link = connect(world.network, world.from, world.to, world.report.rails, eager_max);
    world.drive(link);
    const bool one_lives = world.report.deaths < world.report.rails;
    if (link.sender && one_lives && world.report.violation.empty() && world.chance(30)) {
      world.expect_all_rails_back(link);
    }
    if (link.sender) world.report.rejoins = link.sender->link().rejoins();
    for (int i = 0; i < 100 && world.network.step(); ++i) {
    }
    world.check_memory();
  }
  for (const RailReport& rail : world.from.devices->report()) {
    world.report.retries += rail.totals.retries;
  }
  world.report.retries -= std::exchange(world.retries_before, world.report.retries);
  return world.report;
}

}  // namespace slime::test
