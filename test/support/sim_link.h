// Two simulated rails with one channel between them, and memory at both ends.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "test/support/sim/sim_rail.h"

namespace slime::test {

struct SimLinkOptions {
  uint64_t seed = 1;
  RailCaps caps;  // of both rails, but for the name
  sim::RailModel model;
  bool confirm_delivery = false;
  size_t memory_bytes = 1 << 20;
};

class SimLink {
 public:
  explicit SimLink(const SimLinkOptions& options)
      : network(options.seed),
        source(options.memory_bytes),
        target(options.memory_bytes),
        options_(options) {
    RailCaps caps = options.caps;
    caps.transport = "sim";
    caps.name = "a";
    left_rail = network.open_rail(caps, options.model);
    caps.name = "b";
    right_rail = network.open_rail(caps, options.model);
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 31 + i / 251);
    source_keys = *left_rail->register_memory({source.data(), source.size()});
    target_keys = *right_rail->register_memory({target.data(), target.size()});
    open();
  }

  // New channels, after a reset too. The address of one is the other's business only.
  void open() {
    left.reset();
    right.reset();
    left = *left_rail->open_channel({true, options_.confirm_delivery});
    right = *right_rail->open_channel({false, options_.confirm_delivery});
  }
  bool connect() {
    for (int i = 0; i < 1000; ++i) {
      const Status l = left->connect(right->address());
      const Status r = right->connect(left->address());
      if (l == Status::kOk && r == Status::kOk) return true;
      if (l != Status::kOk && l != Status::kAgain) return false;
      if (r != Status::kOk && r != Status::kAgain) return false;
    }
    return false;
  }

  // Work `index` of `length` bytes: its place is its index, its immediate and cookie are too.
  Work work(uint32_t index, uint32_t length) const {
    const size_t offset = size_t{index} * length;
    return {source.data() + offset,
            source_keys.local,
            reinterpret_cast<uint64_t>(target.data()) + offset,
            offset,
            target_keys.remote,
            length,
            index,
            index};
  }
  // With one doorbell. Returns how many were taken.
  size_t post(uint32_t first, uint32_t count, uint32_t length, Status* status = nullptr) {
    std::vector<Work> works;
    for (uint32_t i = 0; i < count; ++i) works.push_back(work(first + i, length));
    size_t taken = 0;
    const Status result = left->post(works, &taken);
    if (status != nullptr) *status = result;
    return taken;
  }
  // Everything that one end has to report now.
  static std::vector<Done> drain(Channel& channel, Status* status = nullptr) {
    std::vector<Done> all;
    Done done[7];
    size_t count = 0;
    Status result = Status::kOk;
    while ((result = channel.poll(done, &count)) == Status::kOk && count > 0) {
      all.insert(all.end(), done, done + count);
    }
    if (status != nullptr) *status = result;
    return all;
  }
  // Plays all that will happen, with both ends polling. Returns what right saw arrive.
  std::vector<Done> play() {
    std::vector<Done> arrived;
    bool moved = true;
    while (moved) {
      const size_t before = sent + arrived.size();
      for (const Done& done : drain(*right)) arrived.push_back(done);
      for (const Done& done : drain(*left)) sent += done.kind == Done::Kind::kSent;
      moved = sent + arrived.size() > before;
      moved = network.step() || moved;
    }
    return arrived;
  }
  bool landed(uint32_t index, uint32_t length) const {
    const size_t offset = size_t{index} * length;
    return std::memcmp(&source[offset], &target[offset], length) == 0;
  }

  sim::Network network;
  std::vector<std::byte> source, target;
  std::unique_ptr<sim::Rail> left_rail, right_rail;
  MemoryKeys source_keys, target_keys;
  std::unique_ptr<Channel> left, right;
  size_t sent = 0;  // kSent that play() saw

 private:
  const SimLinkOptions options_;
};

}  // namespace slime::test
