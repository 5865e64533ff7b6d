// Two ends of a link between two sets of devices of this program, without a control connection.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "link/setup/handshake_end.h"
#include "message/recv_comm.h"
#include "message/send_comm.h"
#include "test/support/link_parts_of.h"
#include "test/support/pairs_in_order.h"

namespace slime::test {

// A benchmark whose parts do not work has nothing to say.
[[noreturn]] inline void give_up(const Error& error) {
  std::fprintf(stderr, "benchmark: %s\n", error.what.c_str());
  std::abort();
}

template <typename T>
T value_of(Result<T> result) {
  if (!result) give_up(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Connected channels of both ends, before they are given to a link.
struct ChannelPair {
  std::vector<LinkChannel> from, to;
  Side from_side, to_side;
};

// `pass_time` lets a simulated network get on.
template <typename PassTime>
ChannelPair connect_channels(Device& from, const RegisteredBuffer& from_inbox, Device& to,
                             const RegisteredBuffer& to_inbox, uint32_t channels,
                             PassTime pass_time) {
  const auto pairs = pairs_in_order(channels, from, to);
  ChannelSet active(from, pairs, {.active = true, .first = true}), passive(to, pairs, {});
  Side active_side, passive_side;
  value_of(active.open(from_inbox, &active_side));
  value_of(passive.open(to_inbox, &passive_side));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    const Status a = active.connect(passive_side, 0, UINT64_MAX),
                 p = passive.connect(active_side, 0, UINT64_MAX);
    if (a == Status::kOk && p == Status::kOk) break;
    if (std::chrono::steady_clock::now() > end) {
      give_up(make_error(Status::kInternal, 0, "the rails do not connect"));
    }
    pass_time();
  }
  return {active.take(), passive.take(), active_side, passive_side};
}

struct EnginePair {
  std::unique_ptr<SendCommImpl> sender;
  std::unique_ptr<RecvCommImpl> receiver;
  std::vector<const Channel*> send_channels, recv_channels;  // for their counters
};

template <typename PassTime>
EnginePair connect_engines(Devices& from, Devices& to, uint32_t channels, uint32_t eager_max,
                           PassTime pass_time) {
  Device &source = *from.device(0), &target = *to.device(0);
  RegisteredBuffer cts_in = value_of(RegisteredBuffer::make(source, cts_memory_bytes(channels)));
  RegisteredBuffer eager_out =
      value_of(RegisteredBuffer::make(source, eager_memory_bytes(eager_max, channels)));
  RegisteredBuffer eager_in =
      value_of(RegisteredBuffer::make(target, eager_memory_bytes(eager_max, channels)));
  RegisteredBuffer cts_out = value_of(RegisteredBuffer::make(target, cts_memory_bytes(channels)));
  ChannelPair made = connect_channels(source, cts_in, target, eager_in, channels, pass_time);
  EnginePair pair;
  for (const LinkChannel& one : made.from) pair.send_channels.push_back(one.channel.get());
  for (const LinkChannel& one : made.to) pair.recv_channels.push_back(one.channel.get());
  pair.sender = std::make_unique<SendCommImpl>(
      from, source,
      link_parts_of(std::move(made.from), true, eager_max, "receiver", made.to_side,
                    std::move(cts_in), std::move(eager_out)));
  pair.receiver = std::make_unique<RecvCommImpl>(
      to, target,
      link_parts_of(std::move(made.to), false, eager_max, "sender", made.from_side,
                    std::move(eager_in), std::move(cts_out)));
  return pair;
}

inline RailTotals sum_counters(const std::vector<const Channel*>& channels) {
  RailTotals sum;
  for (const Channel* channel : channels) sum.add(snapshot(channel->counters));
  return sum;
}

// What was counted between two snapshots; depths are no differences.
inline RailTotals difference(const RailTotals& after, const RailTotals& before) {
  RailTotals delta;
#define SLIME_FIELD(name, help) delta.name = after.name - before.name;
  SLIME_RAIL_COUNTERS(SLIME_FIELD)
#undef SLIME_FIELD
  delta.queue_depth_max = after.queue_depth_max;
  return delta;
}

}  // namespace slime::test
