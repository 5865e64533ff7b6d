#include "bench/fabric/channel_loop.h"

#include <unistd.h>

#include <algorithm>
#include <span>

#include "test/support/load/engine_pair.h"

namespace slime::bench {

ChannelLoop::ChannelLoop(Rail& from, Rail& to, uint32_t bytes)
    : from_(make_end(from, bytes, true)), to_(make_end(to, bytes, false)) {
  connect();
  Work work;
  work.local = from_.memory.get();
  work.local_key = from_.keys.local;
  work.remote_address = reinterpret_cast<uint64_t>(to_.memory.get());
  work.remote_key = to_.keys.remote;
  work.length = bytes;
  works_.fill(work);
}

ChannelLoop::End ChannelLoop::make_end(Rail& rail, uint32_t bytes, bool active) {
  End end{rail, std::make_unique<std::byte[]>(bytes), {}, nullptr};
  end.keys = test::value_of(rail.register_memory({end.memory.get(), bytes}));
  end.channel = test::value_of(rail.open_channel({.active = active, .first = active}));
  return end;
}

ChannelLoop::~ChannelLoop() {
  for (End* const end : {&from_, &to_}) {
    end->channel = nullptr;
    end->rail.deregister_memory(end->keys);
  }
}

void ChannelLoop::connect() {
  const ChannelAddress of_from = from_.channel->address(), of_to = to_.channel->address();
  for (Status left = Status::kAgain, right = left; left != Status::kOk || right != Status::kOk;) {
    left = from_.channel->connect(of_to);
    right = to_.channel->connect(of_from);
    for (const End* const end : {&from_, &to_}) {
      const Status status = end == &from_ ? left : right;
      if (status != Status::kOk && status != Status::kAgain) test::give_up(end->channel->failure());
    }
    ::usleep(100);
  }
}

uint64_t ChannelLoop::poll(End& end) {
  std::array<Done, 32> done;
  size_t count = 0;
  if (end.channel->poll(done, &count) != Status::kOk) test::give_up(end.channel->failure());
  return count;
}

void ChannelLoop::stream(uint64_t works) {
  uint64_t posted = 0, sent = 0, arrived = 0;
  while (sent < works || arrived < works) {
    const uint64_t room =
        std::min({BareLoop::kDepth - (posted - sent), works - posted, uint64_t{kBatch}});
    size_t taken = 0;
    const Status status = from_.channel->post(std::span(works_).first(room), &taken);
    if (status != Status::kOk) test::give_up(from_.channel->failure());
    posted += taken;
    sent += poll(from_);
    arrived += poll(to_);
  }
}

}  // namespace slime::bench
