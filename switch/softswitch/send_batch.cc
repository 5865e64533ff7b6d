#include "switch/softswitch/send_batch.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/net/socket.h"

namespace slime::net {
namespace {

constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

iovec as_iovec(std::span<const std::byte> bytes) {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
}

}  // namespace

SendBatch::SendBatch(int fd, bool segmentation, IoCounters& counters)
    : fd_(fd), counters_(counters), segment_limit_(segmentation ? kGroupBytes : 0) {
  for (Group& group : groups_) {
    auto* control = reinterpret_cast<cmsghdr*>(group.control.data());
    control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
  }
}

void SendBatch::send(const Outgoing& packet, std::span<const SocketAddress> to) {
  // An answer goes to sap::kMaxChildren at most, so it is never cut in two by a flush.
  static_assert(kGroups >= 2 * sap::kMaxChildren);
  if (answers_used_ == kAnswers || groups_used_ + to.size() > kGroups) flush();
  const Answer& answer = keep(packet);
  for (const SocketAddress& address : to) {
    Group& group = group_for(address, answer.bytes());
    group.parts[group.packets++] = {as_iovec(answer.first), as_iovec(answer.second)};
  }
}

// Copies the header, and a payload of a single word; a longer payload stays where it is.
const SendBatch::Answer& SendBatch::keep(const Outgoing& packet) {
  Answer& answer = answers_[answers_used_++];
  std::ranges::copy(packet.header, answer.start.begin());
  answer.first = std::span(answer.start).first(sap::kHeaderBytes);
  answer.second = packet.payload;
  if (packet.payload.size() <= 4) {  // see Outgoing
    std::ranges::copy(packet.payload, answer.start.begin() + sap::kHeaderBytes);
    answer.first = std::span(answer.start).first(sap::kHeaderBytes + packet.payload.size());
    answer.second = {};
  } else {
    held_[word_of(packet.header.data())] |= bit_of(packet.header.data());
  }
  return answer;
}

bool SendBatch::has_room(const Group& group) const {
  return group.bytes <= segment_limit_ && group.packets < kSegments &&
         (group.packets + 1) * group.bytes <= kGroupBytes;
}

// Results go to the same children in the same order: after one group comes the next.
SendBatch::Group& SendBatch::group_for(const SocketAddress& address, uint32_t bytes) {
  for (uint32_t tried = 0; tried < groups_used_; ++tried) {
    last_group_ = last_group_ + 1 < groups_used_ ? last_group_ + 1 : 0;
    Group& group = groups_[last_group_];
    if (group.bytes == bytes && has_room(group) && group.address == address) return group;
  }
  last_group_ = groups_used_++;
  Group& group = groups_[last_group_];
  group.address = address;
  group.bytes = bytes;
  group.packets = 0;
  return group;
}

// Makes the message of a group. Where it has several packets, a control message gives the size at
// which the kernel cuts them apart.
void SendBatch::prepare(uint32_t index) {
  Group& group = groups_[index];
  msghdr& message = messages_[index].msg_hdr;
  message.msg_name = const_cast<sockaddr*>(group.address.data());
  message.msg_namelen = group.address.size();
  message.msg_iov = group.parts[0].data();
  message.msg_iovlen = 2 * size_t{group.packets};
  message.msg_control = nullptr;
  message.msg_controllen = 0;
  if (group.packets == 1) return;
  const auto segment = static_cast<uint16_t>(group.bytes);
  std::memcpy(CMSG_DATA(reinterpret_cast<cmsghdr*>(group.control.data())), &segment,
              sizeof segment);
  message.msg_control = group.control.data();
  message.msg_controllen = group.control.size();
}

// sendmmsg(2) stops at the first message that fails, and returns its error only if it is the first
// of the call. So after a short count the next call begins with the message that failed; that one
// is given up, and the rest goes on.
void SendBatch::flush() {
  for (uint32_t index = 0; index < groups_used_; ++index) prepare(index);
  for (uint32_t done = 0; done < groups_used_;) {
    const int count = sendmmsg(fd_, &messages_[done], groups_used_ - done, kFlags);
    counters_.send_calls.add();
    if (count <= 0) {
      refused(done++, errno);
      continue;
    }
    for (const uint32_t end = done + static_cast<uint32_t>(count); done < end; ++done) {
      count_sent(groups_[done].packets, messages_[done].msg_len);
    }
  }
  if (answers_used_ > 0) held_.fill(0);
  answers_used_ = groups_used_ = last_group_ = 0;
}

// The kernel has refused a message. If that may be for its segments, its packets go one by one, and
// later packets of that length are not put together.
void SendBatch::refused(uint32_t index, int code) {
  Group& group = groups_[index];
  if (group.packets == 1 || !refuses_segments(code)) return counters_.send_drops.add(group.packets);
  segment_limit_ = std::min(segment_limit_, group.bytes - 1);
  send_singly(group);
}

void SendBatch::send_singly(Group& group) {
  for (uint32_t i = 0; i < group.packets; ++i) {
    msghdr message{};
    message.msg_name = const_cast<sockaddr*>(group.address.data());
    message.msg_namelen = group.address.size();
    message.msg_iov = group.parts[i].data();
    message.msg_iovlen = 2;
    counters_.send_calls.add();
    const ssize_t sent = sendmsg(fd_, &message, kFlags);
    if (sent < 0)
      counters_.send_drops.add();
    else
      count_sent(1, static_cast<uint64_t>(sent));
  }
}

void SendBatch::count_sent(uint32_t packets, uint64_t bytes) {
  counters_.packets_out.add(packets);
  counters_.bytes_out.add(bytes);
  if (packets > 1) counters_.segmented.add(packets);
}

}  // namespace slime::net
