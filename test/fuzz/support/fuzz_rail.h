// A NIC port in the fuzzer's hand: it takes every work, and what arrives is what the fuzzer says.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "devices/devices.h"
#include "link/link_parts.h"
#include "test/fuzz/support/target.h"
#include "test/support/link_parts_of.h"
#include "transports/rail.h"

namespace slime::fuzz {

// Outlives its channel.
struct Wire {
  std::vector<Work> posted;
  std::deque<Done> arrivals;
  bool dead = false;
};

class FuzzChannel final : public Channel {
 public:
  explicit FuzzChannel(Wire& wire) : wire_(wire) {}
  ChannelAddress address() const override { return {}; }
  Status connect(const ChannelAddress&) override { return Status::kOk; }
  Status post(std::span<const Work> works, size_t* taken) override {
    *taken = 0;
    if (wire_.dead) return Status::kRemote;
    *taken = works.size();
    for (const Work& work : works) {
      // A NIC reads what it is given: so does AddressSanitizer.
      for (uint32_t i = 0; i < work.length; ++i) sum_ = work.local[i];
      wire_.posted.push_back(work);
    }
    return Status::kOk;
  }
  Status poll(std::span<Done> done, size_t* count) override {
    for (*count = 0; *count < done.size() && !wire_.arrivals.empty(); ++*count) {
      done[*count] = wire_.arrivals.front();
      wire_.arrivals.pop_front();
    }
    return wire_.dead && *count == 0 && !fenced_ ? Status::kRemote : Status::kOk;
  }
  void fence() override { fenced_ = true; }
  const Error& failure() const override { return error_; }
  std::string peer_name() const override { return "fuzzer"; }

 private:
  Wire& wire_;
  bool fenced_ = false;
  volatile std::byte sum_{};
  const Error error_{Status::kRemote, 0, "the fuzzer ended this rail"};
};

class FuzzRail final : public Rail {
 public:
  explicit FuzzRail(const std::string& name) {
    caps_.name = name;
    caps_.transport = "fuzz";
    caps_.guid = 1;
    caps_.oob_address = "127.0.0.1";
  }
  const RailCaps& caps() const override { return caps_; }
  Result<MemoryKeys> register_memory(const MemoryRange&) override {
    return MemoryKeys{++keys_, keys_ + 1000};
  }
  void deregister_memory(const MemoryKeys&) override {}
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions&) override {
    return std::make_unique<FuzzChannel>(spare_);
  }

 private:
  RailCaps caps_;
  uint64_t keys_ = 0;
  Wire spare_;
};

// A link whose rails are these wires, in their order.
inline LinkParts parts_of(std::span<Wire> wires, bool active, uint32_t eager_max,
                          RegisteredBuffer inbox, RegisteredBuffer outbox) {
  std::vector<LinkChannel> channels;
  for (size_t i = 0; i < wires.size(); ++i) {
    channels.push_back({std::make_unique<FuzzChannel>(wires[i]), i, 10000});
  }
  return test::link_parts_of(std::move(channels), active, eager_max, "fuzzer", Side(),
                             std::move(inbox), std::move(outbox));
}

inline std::unique_ptr<Devices> devices_of(int rails, const Clock& clock) {
  std::vector<std::unique_ptr<Rail>> all;
  for (int i = 0; i < rails; ++i)
    all.push_back(std::make_unique<FuzzRail>("f." + std::to_string(i)));
  return Devices::of_rails(std::move(all), Settings(), clock);
}

}  // namespace slime::fuzz
