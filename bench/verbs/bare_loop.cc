#include "bench/verbs/bare_loop.h"

#include <array>
#include <utility>

#include "test/support/load/engine_pair.h"

namespace slime::bench {

using perf::p2p::BareEnd;

BareLoop::BareLoop(verbs::VerbsRail& from, verbs::VerbsRail& to, size_t bytes) {
  for (auto [end, rail] : {std::pair{&from_, &from}, std::pair{&to_, &to}}) {
    end->memory.resize(bytes);
    end->verbs = test::value_of(BareEnd::open(*rail, end->memory));
  }
  test::value_of(from_.verbs->connect(to_.verbs->name()));
  test::value_of(to_.verbs->connect(from_.verbs->name()));
}

void BareLoop::post(End& end, uint32_t bytes, uint32_t works) {
  std::array<ibv_send_wr, kChain> requests;
  ibv_sge piece = end.verbs->piece(0, bytes);
  requests.fill(end.verbs->work(IBV_WR_RDMA_WRITE_WITH_IMM, &piece));
  test::value_of(end.verbs->post(std::span(requests).first(works), 0));
  end.posted += works;
}

void BareLoop::poll(End& end) {
  std::array<BareEnd::Event, 32> events;
  const size_t count = test::value_of(end.verbs->poll(events));
  for (const BareEnd::Event& event : std::span(events).first(count)) end.arrived += event.arrived;
}

void BareLoop::stream(uint32_t bytes, uint64_t works) {
  const uint64_t posted = from_.posted + works, arrived = to_.arrived + works;
  while (from_.posted < posted || from_.verbs->unfinished() > 0 || to_.arrived < arrived) {
    if (from_.posted < posted && from_.verbs->unfinished() + kChain <= BareEnd::kSends) {
      post(from_, bytes, kChain);
    }
    poll(from_);
    poll(to_);
  }
}

void BareLoop::ping_pong(uint32_t bytes, uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t there = to_.arrived + 1, back = from_.arrived + 1;
    post(from_, bytes, 1);
    while (to_.arrived < there) poll(to_);
    post(to_, bytes, 1);
    while (from_.arrived < back) poll(from_);
  }
  for (End* end : {&from_, &to_}) {
    while (end->verbs->unfinished() > 0) poll(*end);
  }
}

}  // namespace slime::bench
