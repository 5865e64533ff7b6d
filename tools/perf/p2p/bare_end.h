// One end of the least that verbs can do: a reliable-connection queue pair, a completion queue, and
// memory that is registered as a whole, as the rail registers it. It has no stripes, no requests,
// and no memory cache. A write is done when the peer's NIC has its bytes: the peer's memory may not
// have them yet.
//
// States: open() -> connect() with what the peer's name() says -> connected. An error is final.
// Thread: one.
#pragma once

#include <memory>
#include <span>

#include "transports/verbs/lanes.h"
#include "transports/verbs/queue_pair.h"
#include "transports/verbs/rail.h"

namespace slime::perf::p2p {

class BareEnd {
 public:
  static constexpr uint32_t kSends = 256;

  // What the peer must know, as bytes of any two hosts of one byte order.
  struct Name {
    verbs::QueuePairName pair;
    verbs::Gid gid = {};
    uint16_t lid = 0;
    uint8_t mtu = 0, reads_of_peer = 0;
    uint32_t key = 0;
    uint64_t address = 0;
  };

  // The rail outlives it.
  static Result<std::unique_ptr<BareEnd>> open(verbs::VerbsRail& rail, std::span<std::byte> memory);
  ~BareEnd();
  BareEnd(const BareEnd&) = delete;
  BareEnd& operator=(const BareEnd&) = delete;
  Name name() const;
  Result<void> connect(const Name& peer);

  // One work: its bytes begin at the same offset of both memories.
  ibv_sge piece(uint64_t offset, uint32_t bytes) const;
  ibv_send_wr work(ibv_wr_opcode opcode, ibv_sge* piece) const;
  // With one doorbell, and one completion, which has this number. They are at most as many as there
  // is room for: kSends - unfinished().
  Result<void> post(std::span<ibv_send_wr> works, uint64_t number);
  uint32_t unfinished() const { return unfinished_; }
  // Works that were posted with this number are done, or one with this immediate has arrived.
  struct Event {
    bool arrived = false;
    uint64_t number = 0;
    uint32_t works = 0;
  };
  Result<size_t> poll(std::span<Event> events);
  // For one that wants to sleep: arm(), poll(), and sleep() if that finds nothing. It returns when
  // poll() may find something, or after this time.
  Result<void> arm();
  void sleep(int milliseconds) const;

 private:
  BareEnd(verbs::VerbsRail& rail, std::shared_ptr<const verbs::Port> port,
          std::span<std::byte> memory)
      : rail_(rail), port_(std::move(port)), memory_(memory) {}
  Result<void> make();
  Result<void> give_receives();
  const verbs::Nic& nic() const { return rail_.nic(); }

  verbs::VerbsRail& rail_;
  const std::shared_ptr<const verbs::Port> port_;
  const std::span<std::byte> memory_;
  MemoryKeys keys_;
  uint32_t local_key_ = 0;  // the NIC's
  // The order of destruction: the queue pair first.
  std::shared_ptr<ibv_comp_channel> events_;
  verbs::CompletionQueue completions_;
  verbs::QueuePair pair_;
  Name peer_;
  uint32_t unfinished_ = 0, receives_owed_ = 0;
};

}  // namespace slime::perf::p2p
