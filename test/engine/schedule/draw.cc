// What a seed draws: how the rails behave, which messages go and who receives them.
#include <algorithm>

#include "test/engine/schedule/world.h"

namespace slime::test {
namespace {

constexpr size_t kGap = 64;  // between receive buffers: nothing may ever be written there
constexpr std::array<uint32_t, 10> kSizes = {0, 1, 8, 127, 128, 129, 300, 1000, 4096, 9000};

}  // namespace

void ScheduleWorld::Parts::configure_rails() {
  RailCaps own = caps;
  own.ordered = chance(50);
  own.arrives_unpolled = chance(50);
  own.confirms_in_hardware = own.arrives_unpolled && chance(50);
  own.send_queue_depth = chance(20) ? 2 : 16;
  own.max_batch = 8;
  sim::RailModel model;
  model.rate_mbps = chance(50) ? 100'000 : 1'000;
  model.latency_ns = 500 + below(5000);
  model.jitter_ns = own.ordered ? 0 : below(20'000);
  model.delay_ppm = chance(50) ? 100'000 : 0;
  model.delay_ns = 50'000;
  model.repeat_sent_ppm = chance(30) ? 100'000 : 0;
  model.repeat_arrived_ppm = chance(30) ? 100'000 : 0;
  model.repeat_ns = 30'000;
  model.connect_retries = chance(30) ? 10 : 0;
  model.uses_offsets = chance(50);
  model.needs_flush = chance(20);
  target_region = model.needs_flush ? device_region : host_region;
  report.rails = 1 + static_cast<uint32_t>(below(kRails));
  const uint32_t deaths = chance(70) ? static_cast<uint32_t>(below(report.rails + 1)) : 0;
  report.deaths = deaths;
  stopped_until_ns = {};
  many_small = chance(5);
  sender_leaves = chance(20);
  const bool turns = deaths > 0 && chance(many_small ? 90 : 60);
  turns_left = turns ? 1 + static_cast<uint32_t>(below(many_small ? 30 : 8)) : 0;
  for (size_t i = 0; i < kRails; ++i) {
    sim::RailModel mine = model;
    own.name = "a." + std::to_string(i);
    if (i < deaths) {
      if (chance(50)) {
        mine.dies_after_works = 1 + below(20);
      } else {
        mine.dies_at_ns = 1 + below(100'000);
      }
      mine.death = chance(25) ? sim::Death::kSilent : sim::Death::kNoticed;
      mine.notice_ns = below(30'000);
      mine.one_sided_ppm = chance(50) ? 500'000 : 0;
    }
    from.rails[i]->configure(own, mine);
    own.name = "b." + std::to_string(i);
    to.rails[i]->configure(own, model);
  }
}

void ScheduleWorld::Parts::make_messages() {
  messages.clear();
  groups.clear();
  size_t send_used = 0;
  target_used = kGap;
  const size_t group_count = many_small ? 20 + below(100) : 1 + below(12);
  const int tags = 1 + static_cast<int>(below(3));
  for (size_t g = 0; g < group_count; ++g) {
    Group group;
    const size_t parts = chance(70) ? 1 : 1 + below(kMaxReceives);
    for (size_t p = 0; p < parts; ++p) {
      Message message;
      message.tag = static_cast<int>(below(static_cast<uint64_t>(tags)));
      message.bytes = kSizes[below(many_small && chance(90) ? 6 : kSizes.size())];
      message.pattern = random.next();
      const size_t capacity = message.bytes + (chance(50) ? 0 : below(200));
      if (send_used + message.bytes > kArena || target_used + capacity + kGap > kArena) break;
      message.send_offset = send_used;
      for (size_t i = 0; i < message.bytes; ++i) {
        source[send_used + i] = pattern_byte(message.pattern, i);
      }
      send_used += message.bytes;
      group.parts.push_back({message.tag, capacity, target_used, messages.size()});
      target_used += capacity + kGap;
      messages.push_back(message);
    }
    if (!group.parts.empty()) groups.push_back(group);
  }
  std::fill_n(target.begin(), target_used, kPoison);
  std::fill_n(expected.begin(), target_used, kPoison);
  report.messages = messages.size();
}

}  // namespace slime::test
