// Answers of one batch, gathered to be sent with few system calls.
#pragma once

#include <netinet/in.h>

#include <array>
#include <span>

#include "base/net/socket.h"
#include "switch/core/shard.h"

namespace slime::net {

// Counters of one shard's socket. switch/core counts what the packets were.
// X(name, help)
#define SLIME_IO_COUNTERS(X)                                                      \
  X(batches, "receive calls that brought packets")                                \
  X(receive_calls, "system calls that asked for packets")                         \
  X(send_calls, "system calls that sent packets")                                 \
  X(packets_in, "packets received")                                               \
  X(packets_out, "packets sent")                                                  \
  X(bytes_in, "bytes received, without UDP's header")                             \
  X(bytes_out, "bytes sent, without UDP's header")                                \
  X(truncated, "packets longer than any that is known; malformed too")            \
  X(send_drops, "packets that the kernel refused to send; they are asked again")  \
  X(segmented, "of those sent, packets that shared their way through the kernel") \
  X(early_sends, "answers sent before the batch ended as their slot was used again")

SLIME_DECLARE_COUNTERS(IoCounters, IoTotals, SLIME_IO_COUNTERS)

// Packets of one length to one address go through the kernel together and are cut apart at the end
// (udp(7), UDP_SEGMENT), because most of a packet's cost is its way through the kernel.
//
// States: empty, or with answers that wait for flush().
// Invariant: payload is not copied but sent from the slot's memory. So before a packet is handled,
// its caller asks holds() whether an answer from that slot waits, and flushes if so.
// Thread rules: one thread; counters may be read from any.
class SendBatch final : public Outbox {
 public:
  SendBatch(int fd, bool segmentation, IoCounters& counters);

  // The payload must stay as it is until flush().
  void send(const Outgoing& packet, std::span<const SocketAddress> to) override;
  // Whether an answer to be sent uses the memory that this packet may change.
  bool holds(std::span<const std::byte> datagram) const {
    return answers_used_ > 0 && datagram.size() >= sap::kHeaderBytes &&
           (held_[word_of(datagram.data())] & bit_of(datagram.data())) != 0;
  }
  // Sends all, or counts what the kernel refuses: the protocol asks again for what is lost.
  void flush();

 private:
  static constexpr uint32_t kAnswers = 256;
  static constexpr uint32_t kGroups = 128;
  static constexpr uint32_t kSegments = 16;        // the kernel takes 64; the gain is had before
  static constexpr uint32_t kGroupBytes = 65'000;  // below what an IP packet may have
  static constexpr size_t kWords = 16;

  // A filter over (job, slot, half). Neighbouring slots never share a bit, so that a window of
  // slots, the common case, is never sent early.
  static uint32_t place_of(const std::byte* header) {
    const uint32_t half = sap::wire::get32(header + sap::at::kEpoch) & 1u;
    return 2u * sap::wire::get16(header + sap::at::kSlot) + half +
           97u * sap::wire::get16(header + sap::at::kJob);
  }
  static size_t word_of(const std::byte* header) { return place_of(header) / 64 % kWords; }
  static uint64_t bit_of(const std::byte* header) { return uint64_t{1} << place_of(header) % 64; }

  // One per answer, shared by all messages that carry it.
  struct Answer {
    std::array<std::byte, sap::kHeaderBytes + 4> start;  // and a payload of a single word
    std::span<const std::byte> first, second;
    uint32_t bytes() const { return static_cast<uint32_t>(first.size() + second.size()); }
  };
  // Packets of `bytes` each to one address.
  struct Group {
    SocketAddress address;
    uint32_t bytes = 0;
    uint32_t packets = 0;
    std::array<std::array<iovec, 2>, kSegments> parts;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(uint16_t))> control{};
  };

  const Answer& keep(const Outgoing& packet);
  Group& group_for(const SocketAddress& address, uint32_t bytes);
  bool has_room(const Group& group) const;
  void prepare(uint32_t index);
  void refused(uint32_t index, int code);
  void send_singly(Group& group);
  void count_sent(uint32_t packets, uint64_t bytes);

  const int fd_;
  IoCounters& counters_;
  uint32_t segment_limit_;  // bytes; longer packets go alone
  std::array<Answer, kAnswers> answers_;
  std::array<Group, kGroups> groups_;
  std::array<mmsghdr, kGroups> messages_{};
  std::array<uint64_t, kWords> held_{};
  uint32_t answers_used_ = 0;
  uint32_t groups_used_ = 0;
  uint32_t last_group_ = 0;
};

}  // namespace slime::net
