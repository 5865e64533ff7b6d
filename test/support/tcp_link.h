// Two ends of a link over real tcp rails on loopback, in one process and one thread.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "devices/devices.h"
#include "message/comm.h"
#include "transports/registry.h"

namespace slime::test {

// A rail that can be made to die: its channels then fail at this end, and the peer sees them close.
class MortalRail final : public Rail {
 public:
  explicit MortalRail(std::unique_ptr<Rail> inner)
      : shown(inner->caps()), inner_(std::move(inner)) {}
  const RailCaps& caps() const override { return shown; }
  Result<MemoryKeys> register_memory(const MemoryRange& range) override {
    return inner_->register_memory(range);
  }
  void deregister_memory(const MemoryKeys& keys) override { inner_->deregister_memory(keys); }
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) override {
    if (cannot_open) return fail(make_error(Status::kSystem, 0, "the test lets nobody open it"));
    auto channel = inner_->open_channel(options);
    if (!channel) return channel;
    return std::make_unique<MortalChannel>(*this, std::move(*channel));
  }
  Carrier carrier() override { return port; }

  RailCaps shown;  // a test may change what it says of itself
  std::atomic<bool> dead = false;
  std::atomic<bool> cannot_open = false;
  Carrier port = Carrier::kUp;

 private:
  class MortalChannel final : public Channel {
   public:
    MortalChannel(const MortalRail& rail, std::unique_ptr<Channel> inner)
        : rail_(rail), inner_(std::move(inner)) {}
    ChannelAddress address() const override { return inner_->address(); }
    Status connect(const ChannelAddress& peer) override {
      return rail_.dead ? Status::kRemote : inner_->connect(peer);
    }
    Status post(std::span<const Work> works, size_t* taken) override {
      *taken = 0;
      return rail_.dead ? Status::kRemote : inner_->post(works, taken);
    }
    Status poll(std::span<Done> done, size_t* count) override {
      *count = 0;
      return rail_.dead && !fenced_ ? Status::kRemote : inner_->poll(done, count);
    }
    void fence() override {
      fenced_ = true;
      inner_->fence();
    }
    bool silent_for(uint64_t ns) override { return rail_.dead || inner_->silent_for(ns); }
    const Error& failure() const override { return rail_.dead ? error_ : inner_->failure(); }
    std::string peer_name() const override { return inner_->peer_name(); }

   private:
    const MortalRail& rail_;
    std::unique_ptr<Channel> inner_;
    bool fenced_ = false;
    Error error_{Status::kRemote, 0, "rail " + rail_.caps().name + ": the test made this rail die"};
  };

  std::unique_ptr<Rail> inner_;
};

struct TcpHost {
  // Idle comms are attended to only if a test says so: most look into both ends by themselves.
  explicit TcpHost(Settings settings, const Clock& clock = SteadyClock::instance(),
                   bool attends_idle_comms = false, MemoryKind also_takes = MemoryKind::kHost) {
    settings.ifname = "=lo";
    settings.transports = "tcp";
    std::vector<std::string> notes;
    auto opened = open_rails(settings, &notes);
    EXPECT_TRUE(opened) << opened.error().what;
    std::vector<std::unique_ptr<Rail>> wrapped;
    for (auto& rail : *opened) {
      auto mortal = std::make_unique<MortalRail>(std::move(rail));
      mortal->shown.memory_kinds |= static_cast<uint32_t>(also_takes);
      rails.push_back(mortal.get());
      wrapped.push_back(std::move(mortal));
    }
    devices = Devices::of_rails(std::move(wrapped), settings, clock, attends_idle_comms);
  }

  std::vector<MortalRail*> rails;
  std::unique_ptr<Devices> devices;
};

// A guard against hanging tests, not a measurement.
inline bool in_time(const std::function<bool()>& step) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!step()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

struct TcpLink {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<SendComm> sender;
  std::unique_ptr<RecvComm> receiver;

  // `sends`, `receives`: what the two ends' communicators ask for.
  void connect(TcpHost& from, TcpHost& to, const CommOptions& sends = {},
               const CommOptions& receives = {}) {
    Handle handle;
    auto opened = Listener::open(*to.devices, 0, &handle, receives);
    ASSERT_TRUE(opened) << opened.error().what;
    listener = std::move(*opened);
    auto connector = Connector::open(*from.devices, 0, handle, sends);
    ASSERT_TRUE(connector) << connector.error().what;
    ASSERT_TRUE(in_time([&] {
      if (!sender) {
        auto step = (*connector)->step();
        EXPECT_TRUE(step) << step.error().what;
        if (step) sender = std::move(*step);
      }
      if (!receiver) {
        auto step = listener->accept();
        EXPECT_TRUE(step) << step.error().what;
        if (step) receiver = std::move(*step);
      }
      return sender && receiver;
    }));
  }
};

}  // namespace slime::test
