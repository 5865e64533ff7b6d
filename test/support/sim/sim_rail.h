// A simulated NIC port, its channels and its flusher: slime::Rail over a sim::Network.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "test/support/sim/network.h"
#include "transports/rail.h"
#include "transports/region_table.h"

namespace slime::sim {

// A rail is alive, or dead from kill() to revive() or Network::reset(). Channels between live rails
// are not affected by the death of others.
class Rail final : public slime::Rail {
 public:
  ~Rail() override;
  const RailCaps& caps() const override { return caps_; }
  Result<MemoryKeys> register_memory(const MemoryRange& range) override;
  void deregister_memory(const MemoryKeys& keys) override;
  Result<std::unique_ptr<slime::Channel>> open_channel(const ChannelOptions& options) override;
  Result<std::unique_ptr<slime::Poller>> open_poller() override;
  Result<std::unique_ptr<slime::Flusher>> open_flusher() override;

  const RailModel& model() const { return model_; }
  // For the next schedule, beside Network::reset(), while no channel is open.
  void configure(const RailCaps& caps, const RailModel& model);
  void set_rate(uint64_t mbps) { model_.rate_mbps = mbps; }  // of works posted from now on
  void kill(Death death);                                    // now, for all its channels
  void revive();  // channels opened from now on work again
  bool dead() const { return dead_; }
  bool silent() const { return dead_ && death_ == Death::kSilent; }  // the ends get no notice
  uint64_t works_posted() const { return works_posted_; }
  // The device sees the oldest `writes` that were kept back, as it may at any time.
  void show_device(uint64_t writes = UINT64_MAX) {
    write_back(written_back_ + std::min<uint64_t>(writes, unflushed_.size()));
  }

  // The rest is for the network. Counts a work that was posted; the rail may die after it.
  void count_work();
  // Sends bytes to `peer` behind all that was posted before. Returns when they have left the wire.
  uint64_t occupy_wire(const Rail& peer, uint32_t bytes);
  bool is_local(uint64_t key, const std::byte* address, uint64_t bytes, uint8_t right = 0) const {
    const RegionTable::Pin pin(regions_, key, reinterpret_cast<uint64_t>(address), bytes, right);
    return pin.access() == RegionTable::Access::kGranted;
  }
  // The place in our memory that a peer's work names; nullptr: its key does not allow that.
  std::byte* place_of(const Work& work) const;
  // Writes to device memory, if a flush is needed, wait in unflushed_.
  void write_memory(const Work& work, std::byte* target, const std::byte* source, uint64_t bytes);

 private:
  friend class Network;
  friend class Flusher;
  // A write into device memory that the device does not see yet.
  struct Unflushed {
    uint64_t remote_key;
    std::byte* target;
    std::vector<std::byte> bytes;
  };
  void write_back(uint64_t until);
  void write_back_range(uint64_t remote_key);

  // Local keys are those of regions_, and remote ones differ in a bit that no index has: a work
  // with the wrong one of the two is refused.
  static constexpr uint64_t kRemoteBit = uint64_t{1} << 31;

  Rail(Network& network, const RailCaps& caps, const RailModel& model);
  void schedule_death(uint64_t at_ns);
  void reset();

  Network& network_;
  const Index id_;
  RailCaps caps_;
  RailModel model_;
  RegionTable regions_;
  uint64_t wire_free_ps_ = 0;  // when the wire has sent all that was posted; picoseconds, so that
                               // the rounding of many small works does not add up
  uint64_t works_posted_ = 0;
  std::deque<Unflushed> unflushed_;  // in the order of their arrival
  uint64_t written_back_ = 0;        // how many have gone from there
  uint32_t epoch_ = 0;               // a scheduled death is for one epoch only
  bool dead_ = false;
  Death death_ = Death::kNoticed;
};

// Names the ends that were opened on it, in turns. It keeps no list of them: the network has all.
class Poller final : public slime::Poller {
 public:
  Poller(Network& network, const Rail& rail) : slime::Poller(rail), network_(network) {}
  size_t poll(std::span<uint64_t> tags) override;
  int descriptor() const override { return -1; }  // nobody sleeps in virtual time

 private:
  Network& network_;
  Index next_ = 0;  // where the next look begins
};

// Reads behind what has arrived on a rail; see RailModel::needs_flush.
class Flusher final : public slime::Flusher {
 public:
  explicit Flusher(Rail& rail) : rail_(rail) {}
  Status begin(const std::byte* address, uint64_t offset, const MemoryKeys& keys) override;
  Status poll(uint64_t* completed) override;
  const Error& failure() const override { return failure_; }

 private:
  static constexpr size_t kMostReads = 2;
  struct Read {
    uint64_t done_ns;
    uint64_t behind;  // how many writes of the rail, ever
  };
  Rail& rail_;
  std::deque<Read> reads_;
  uint64_t completed_ = 0;
  Error failure_;
};

// One end of a channel, as its owner calls it. Its state is an Endpoint of the network.
class Channel final : public slime::Channel {
 public:
  Channel(Network& network, Rail& rail, const ChannelOptions& options);
  ~Channel() override;
  ChannelAddress address() const override;
  Status connect(const ChannelAddress& peer) override;
  Status post(std::span<const Work> works, size_t* taken) override;
  Status poll(std::span<Done> done, size_t* count) override;
  Status arm() override;
  void disarm() override { end_.armed = false; }
  void fence() override {
    network_.run_due();
    network_.failures_.fence(end_);
  }
  const Error& failure() const override { return end_.error; }
  std::string peer_name() const override { return end_.peer_label; }

 private:
  Status pair_with(const ChannelAddress& address);
  Status fail(Error error) { return network_.failures_.fail(end_, true, std::move(error)); }
  size_t collect(std::span<Done> done);

  Network& network_;
  Endpoint& end_;
};

inline uint64_t latency_ns(const Rail& a, const Rail& b) {
  return std::max(a.model().latency_ns, b.model().latency_ns);
}

}  // namespace slime::sim
