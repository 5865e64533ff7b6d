// A rail without a NIC: it takes works, completes them at the next poll and tells the peer's end.
// What an engine costs over it is the engine's own cost, and the little that the rail costs is
// measured beside it.
//
// Like a NIC, it does not spend the processor on payload: only records of the link protocol, up to
// kCopiedBytes, are copied; longer works move no bytes. One thread; after construction nothing is
// allocated.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/rail.h"

namespace slime::test {

// One direction of a pair of channels. Both ends look at one ring:
//
//     arrived        sent         tail     ("arrived" and "sent" in either order)
//   -----|-------------|------------|----> works, counted from 0
//        to report     to report
struct NullLane {
  static constexpr uint32_t kCapacity = 1024;
  struct Entry {
    uint64_t cookie;
    uint32_t immediate;
    uint32_t length;
  };

  Entry& at(uint32_t work) { return entries[work & (kCapacity - 1)]; }
  uint32_t room() const {
    const uint32_t unsent = tail - sent, unread = tail - arrived;
    return kCapacity - (unsent > unread ? unsent : unread);
  }

  uint32_t tail = 0;
  uint32_t sent = 0;     // kSent was given out
  uint32_t arrived = 0;  // kArrived was given out
  bool closed = false;   // an end is gone or fenced
  std::vector<Entry> entries = std::vector<Entry>(kCapacity);
};

class NullChannel;

// Where the two ends of a channel find each other. Must outlive rails and channels.
class NullNetwork {
 public:
  NullChannel* find(uint64_t id) const { return id < channels_.size() ? channels_[id] : nullptr; }

 private:
  friend class NullChannel;
  std::vector<NullChannel*> channels_;  // by id; nullptr: gone
};

class NullChannel final : public Channel {
 public:
  NullChannel(NullNetwork& network, const RailCaps& caps, const ChannelOptions& options)
      : network_(network), caps_(caps), options_(options), id_(network.channels_.size()) {
    network.channels_.push_back(this);
  }
  ~NullChannel() override {
    close();
    network_.channels_[id_] = nullptr;
  }

  ChannelAddress address() const override {
    ChannelAddress address{};
    std::memcpy(address.data(), &id_, sizeof id_);
    return address;
  }

  Status connect(const ChannelAddress& peer) override {
    if (out_) return Status::kOk;
    uint64_t id = 0;
    std::memcpy(&id, peer.data(), sizeof id);
    NullChannel* other = network_.find(id);
    if (other == nullptr || other == this || other->out_) return fail_with("no such peer");
    out_ = other->in_ = std::make_shared<NullLane>();
    in_ = other->out_ = std::make_shared<NullLane>();
    return Status::kOk;
  }

  Status post(std::span<const Work> works, size_t* taken) override {
    *taken = 0;
    if (!out_ || out_->closed) return fail_with("posted on a channel that is not connected");
    const size_t count = std::min<size_t>({works.size(), caps_.max_batch, room()});
    if (count == 0) {
      counters.futile_posts.add(!works.empty());
      return Status::kOk;
    }
    uint64_t bytes = 0;
    for (const Work& work : works.first(count)) {
      if (work.length <= kCopiedBytes) deliver(work);
      out_->at(out_->tail++) = {work.cookie, work.immediate, work.length};
      bytes += work.length;
    }
    counters.doorbells.add();
    counters.works.add(count);
    counters.bytes_sent.add(bytes);
    *taken = count;
    return Status::kOk;
  }

  Status poll(std::span<Done> done, size_t* count) override {
    *count = 0;
    counters.polls.add();
    if (!out_) return fail_with("polled before it was connected");
    *count = take_sent(done);
    *count += take_arrived(done.subspan(*count));
    if (*count > 0) return Status::kOk;
    counters.empty_polls.add();
    return in_->closed && !fenced_ ? fail_with("the peer closed its end") : Status::kOk;
  }

  void fence() override {
    fenced_ = true;
    close();
  }
  const Error& failure() const override { return failure_; }
  std::string peer_name() const override { return "the other end"; }

 private:
  static constexpr uint32_t kCopiedBytes = 1024;

  uint32_t room() const {
    const uint32_t outstanding = out_->tail - out_->sent;
    const uint32_t free = caps_.send_queue_depth - outstanding;
    return free < out_->room() ? free : out_->room();
  }

  static void deliver(const Work& work) {
    if (work.length == 0) return;
    std::memcpy(reinterpret_cast<void*>(work.remote_address), work.local, work.length);
  }

  size_t take_sent(std::span<Done> done) {
    NullLane& lane = *out_;
    const uint32_t due = (options_.confirm_delivery ? lane.arrived : lane.tail) - lane.sent;
    const size_t count = due < done.size() ? due : done.size();
    for (size_t i = 0; i < count; ++i) {
      done[i] = {Done::Kind::kSent, 0, 0, lane.at(lane.sent++).cookie};
    }
    return count;
  }

  size_t take_arrived(std::span<Done> done) {
    NullLane& lane = *in_;
    const uint32_t due = fenced_ ? 0 : lane.tail - lane.arrived;
    const size_t count = due < done.size() ? due : done.size();
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      const NullLane::Entry& entry = lane.at(lane.arrived++);
      done[i] = {Done::Kind::kArrived, entry.immediate, entry.length, 0};
      bytes += entry.length;
    }
    if (count > 0) {
      counters.arrivals.add(count);
      counters.bytes_received.add(bytes);
    }
    return count;
  }

  void close() {
    if (out_) in_->closed = out_->closed = true;
  }

  Status fail_with(const char* what) {
    if (failure_.status == Status::kOk) {
      failure_ = make_error(Status::kRemote, 0, "null rail %s: %s", caps_.name.c_str(), what);
    }
    return failure_.status;
  }

  NullNetwork& network_;
  const RailCaps& caps_;
  const ChannelOptions options_;
  const uint64_t id_;
  std::shared_ptr<NullLane> out_, in_;
  bool fenced_ = false;
  Error failure_{Status::kOk, 0, {}};
};

class NullRail final : public Rail {
 public:
  NullRail(NullNetwork& network, RailCaps caps) : network_(network), caps_(std::move(caps)) {}

  const RailCaps& caps() const override { return caps_; }
  // Nothing is looked up by key: works between the ends of one program are trusted.
  Result<MemoryKeys> register_memory(const MemoryRange&) override { return MemoryKeys{1, 2}; }
  void deregister_memory(const MemoryKeys&) override {}
  Result<std::unique_ptr<Channel>> open_channel(const ChannelOptions& options) override {
    return std::make_unique<NullChannel>(network_, caps_, options);
  }

 private:
  NullNetwork& network_;
  const RailCaps caps_;
};

}  // namespace slime::test
