// A Link without comms: works are submitted to it directly, and its peer only polls.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "link/link.h"
#include "test/support/load/engine_pair.h"

namespace slime::test {

class BareLink final : private LinkEnd, private WorkOwner {
 public:
  // Every work writes `bytes` bytes from `source` to `target`.
  template <typename PassTime>
  BareLink(Devices& from, Devices& to, uint32_t channels, uint32_t bytes, PassTime pass_time)
      : bytes_(bytes),
        source_(value_of(RegisteredBuffer::make(*from.device(0), bytes))),
        target_(value_of(RegisteredBuffer::make(*to.device(0), bytes))) {
    ChannelPair made =
        connect_channels(*from.device(0), source_, *to.device(0), target_, channels, pass_time);
    peer_ = std::move(made.to);
    for (const LinkChannel& one : made.from) channels_.push_back(one.channel.get());
    LinkParts parts{
        value_of(RegisteredBuffer::make(*from.device(0), link_memory_bytes(0, channels))),
        value_of(RegisteredBuffer::make(*from.device(0), link_memory_bytes(0, channels)))};
    parts.channels = std::move(made.from);
    parts.active = true;
    parts.peer = "receiver";
    link_ = std::make_unique<Link>(from, *from.device(0), std::move(parts));
    link_->serve(*this);
  }

  // False: no rail has room.
  bool submit() {
    LinkRails& rails = link_->rails();
    const size_t rail = rails.quickest_rail(bytes_);
    if (rails.room(rail) == 0) return false;
    const Work work{.local = source_.data(),
                    .local_key = rails[rail].local_key(source_.region()),
                    .remote_address = reinterpret_cast<uint64_t>(target_.data()),
                    .remote_key = target_.region()->keys[rail].remote,
                    .length = bytes_};
    rails.submit(rail, work, this, 0);
    return true;
  }
  void progress() {
    if (link_->progress() != Status::kOk) give_up(link_->context().failure());
  }
  void drain_peer() {
    std::array<Done, 64> done;
    for (const LinkChannel& end : peer_) {
      for (size_t count = done.size(); count == done.size();) {
        if (end.channel->poll(done, &count) != Status::kOk) give_up(end.channel->failure());
      }
    }
  }

  uint64_t done() const { return done_; }
  const std::vector<const Channel*>& channels() const { return channels_; }

 private:
  Status on_arrived(size_t, uint32_t, uint64_t) override { return Status::kOk; }
  void on_done(uint32_t) override { ++done_; }
  void on_lost(uint32_t) override {}
  OutboxPiece fence_record(const RailLife&) override { return {}; }
  Status on_both_fenced(const RailLife& life) override {
    link_->rails().hand_back_works(life.rail);
    return Status::kOk;
  }

  const uint32_t bytes_;
  RegisteredBuffer source_, target_;
  uint64_t done_ = 0;
  std::vector<LinkChannel> peer_;
  std::vector<const Channel*> channels_;
  std::unique_ptr<Link> link_;  // last: gone before the memory it uses
};

}  // namespace slime::test
