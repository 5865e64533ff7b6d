// The hosts of a schedule, its messages and its receives: draw.cc draws them, schedule.cc drives
// them.
#pragma once

#include <array>
#include <vector>

#include "test/engine/schedule/schedule.h"
#include "test/support/sim_hosts.h"

namespace slime::test {

inline constexpr size_t kRails = 4;
inline constexpr size_t kArena = 256 << 10;
inline constexpr std::byte kPoison{0xee};

struct Message {
  int tag = 0;
  uint32_t bytes = 0;
  uint64_t pattern = 0;
  size_t send_offset = 0;
  Request* request = nullptr;
  bool issued = false, done = false;
};

struct Group {
  struct Part {
    int tag = 0;
    size_t capacity = 0;
    size_t offset = 0;
    size_t message = 0;  // the one that belongs here
  };
  std::vector<Part> parts;
  Request* request = nullptr;  // the receive, then its flush
  std::array<size_t, kMaxReceives> sizes = {};
  bool issued = false, flushing = false, done = false;
};

inline std::byte pattern_byte(uint64_t pattern, size_t i) {
  return static_cast<std::byte>((pattern + i * 0x9e3779b97f4a7c15) >> 32 & 0xff);
}

inline Settings schedule_settings() {
  Settings settings;
  settings.min_stripe = 128;
  settings.rail_timeout = 0.002;
  settings.rail_retry = 20e-6;
  settings.connect_timeout = 0.001;
  settings.request_timeout = 5;
  settings.watermark = 4;
  return settings;
}

inline RailCaps schedule_caps() {
  RailCaps caps;
  caps.memory_kinds =
      static_cast<uint32_t>(MemoryKind::kHost) | static_cast<uint32_t>(MemoryKind::kCuda);
  return caps;
}

struct ScheduleWorld::Parts {
  sim::Network network{1};
  RailCaps caps = schedule_caps();
  Settings settings = schedule_settings();
  SimHost from{network, kRails, caps, settings, "a"}, to{network, kRails, caps, settings, "b"};
  std::vector<std::byte> source, target, expected;
  std::vector<Message> messages;
  std::vector<Group> groups;
  const MemoryRegion* source_region = nullptr;
  // The target as host memory and as device memory, and which it is now.
  const MemoryRegion *host_region = nullptr, *device_region = nullptr, *target_region = nullptr;
  sim::Random random{1};
  ScheduleReport report;
  uint64_t target_used = 0;
  size_t retries_before = 0;
  std::array<uint64_t, 2> stopped_until_ns = {};  // sender, receiver: nobody calls it
  uint32_t turns_left = 0;                        // how often a mortal rail may still die or return
  bool many_small = false;                        // enough messages to use eager buffers again
  bool sender_leaves = false;                     // as soon as it has nothing left to do

  Parts() : source(kArena), target(kArena), expected(kArena) {
    source_region = *from.device().memory().acquire({source.data(), kArena});
    host_region = *to.device().memory().acquire({target.data(), kArena});
    device_region = *to.device().memory().acquire({target.data(), kArena, MemoryKind::kCuda});
  }

  uint64_t below(uint64_t bound) { return random.up_to(bound - 1); }
  bool chance(uint64_t percent) { return below(100) < percent; }

  void configure_rails();
  void make_messages();
  void drive(SimLink& link);
  bool send_some(SendCommImpl& sender, bool* failed);
  bool receive_some(RecvCommImpl& receiver, bool* failed);
  bool flush(RecvCommImpl& receiver, Group& group, bool* failed);
  void check_received(Group& group);
  void check_memory();
  void turn_a_rail();
  void expect_all_rails_back(SimLink& link);
  bool sends_done() const;
  bool receives_done() const;
  void violate(const char* what) {
    if (report.violation.empty()) report.violation = what;
  }
};

}  // namespace slime::test
