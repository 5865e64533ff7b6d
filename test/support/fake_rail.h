// A rail and a channel that only record what the engine asks of them.
#pragma once

#include <map>
#include <vector>

#include "transports/rail.h"

namespace slime::test {

class FakeChannel final : public Channel {
 public:
  ChannelAddress address() const override { return {}; }
  Status connect(const ChannelAddress&) override { return Status::kOk; }
  Status post(std::span<const Work> works, size_t* taken) override {
    *taken = std::min(works.size(), takes);
    batches.push_back(*taken);
    in_flight.insert(in_flight.end(), works.begin(), works.begin() + static_cast<long>(*taken));
    return status;
  }
  Status poll(std::span<Done>, size_t* count) override {
    *count = 0;
    return status;
  }
  void fence() override {}
  const Error& failure() const override { return error; }
  std::string peer_name() const override { return "fake"; }

  size_t takes = SIZE_MAX;  // works per post at most
  Status status = Status::kOk;
  Error error;
  std::vector<size_t> batches;  // works taken by each doorbell
  std::vector<Work> in_flight;
};

class FakeRail final : public Rail {
 public:
  explicit FakeRail(RailCaps caps) : caps_(std::move(caps)) {}
  const RailCaps& caps() const override { return caps_; }
  Result<MemoryKeys> register_memory(const MemoryRange& range) override {
    if (registrations_left == 0) {
      return fail(make_error(Status::kNoMemory, 0, "no more registrations"));
    }
    --registrations_left;
    const MemoryKeys keys{next_key_, next_key_ + 1000};
    registered[next_key_++] = range;
    return keys;
  }
  void deregister_memory(const MemoryKeys& keys) override { registered.erase(keys.local); }
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions&) override {
    return std::make_unique<FakeChannel>();
  }

  size_t registrations_left = SIZE_MAX;
  std::map<uint64_t, MemoryRange> registered;

 private:
  const RailCaps caps_;
  uint64_t next_key_ = 1;
};

inline RailCaps fake_caps(const std::string& name, uint64_t guid = 1) {
  RailCaps caps;
  caps.name = name;
  caps.transport = "fake";
  caps.guid = guid;
  caps.oob_address = "127.0.0.1";
  return caps;
}

}  // namespace slime::test
