#include "bench/verbs/bare_loop.h"

#include <array>
#include <cerrno>
#include <utility>

#include "test/support/load/engine_pair.h"

namespace slime::bench {
namespace {

constexpr uint64_t kReceive = UINT64_MAX;  // wr_id; others count works

}  // namespace

BareLoop::BareLoop(std::shared_ptr<const verbs::Port> from, std::shared_ptr<const verbs::Port> to,
                   size_t bytes, const Settings& settings) {
  from_.port = std::move(from);
  to_.port = std::move(to);
  prepare(from_, bytes);
  prepare(to_, bytes);
  connect(from_, to_, settings);
  connect(to_, from_, settings);
}

BareLoop::~BareLoop() {
  for (End* end : {&from_, &to_}) {
    const verbs::Symbols& verbs = end->port->nic->verbs();
    end->pair = verbs::QueuePair();
    (void)verbs.destroy_cq(end->completions);
    (void)verbs.dereg_mr(end->region);
  }
}

void BareLoop::prepare(End& end, size_t bytes) {
  const verbs::Nic& nic = *end.port->nic;
  end.completions = nic.verbs().create_cq(nic.context(), kDepth + kReceives, nullptr, nullptr, 0);
  if (end.completions == nullptr) test::give_up(system_error(errno, "ibv_create_cq failed"));
  end.pair = test::value_of(
      verbs::QueuePair::create(end.port, nic.pd(), end.completions, {kDepth, kReceives, kChain}));
  end.memory = std::make_unique<std::byte[]>(bytes);
  end.region = nic.verbs().reg_mr(nic.pd(), end.memory.get(), bytes,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (end.region == nullptr) test::give_up(system_error(errno, "ibv_reg_mr failed"));
  test::value_of(end.pair.initialize(0, IBV_ACCESS_REMOTE_WRITE));
  give_receives(end, kReceives);
}

void BareLoop::connect(End& end, const End& peer, const Settings& settings) {
  verbs::Path path = verbs::Path::from(*end.port, settings, kNoTrafficClass);
  path.gid = peer.port->gid.gid;
  path.lid = peer.port->lid;
  path.mtu = std::min(end.port->mtu, peer.port->mtu);
  test::value_of(end.pair.receive_from(path, {peer.pair.number(), 0}));
  test::value_of(end.pair.send_to(path, 0));
}

void BareLoop::give_receives(End& end, uint32_t count) {
  std::array<ibv_recv_wr, 64> requests = {};
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].wr_id = kReceive;
    requests[i].next = i + 1 < requests.size() ? &requests[i + 1] : nullptr;
  }
  for (; count >= requests.size(); count -= requests.size()) {
    ibv_recv_wr* refused = nullptr;
    const int code = ibv_post_recv(end.pair.get(), requests.data(), &refused);
    if (code != 0) test::give_up(system_error(code, "ibv_post_recv failed"));
  }
}

void BareLoop::post(End& end, const End& peer, uint32_t bytes, uint32_t works) {
  std::array<ibv_send_wr, kChain> requests = {};
  ibv_sge piece = {reinterpret_cast<uint64_t>(end.memory.get()), bytes, end.region->lkey};
  for (uint32_t i = 0; i < works; ++i) {
    ibv_send_wr& request = requests[i];
    request.next = i + 1 < works ? &requests[i + 1] : nullptr;
    request.wr_id = works;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.send_flags = i + 1 == works ? IBV_SEND_SIGNALED : 0;
    if (bytes <= end.pair.inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
    request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(peer.memory.get());
    request.wr.rdma.rkey = peer.region->rkey;
  }
  const int code = end.pair.post(requests.data());
  if (code != 0) test::give_up(system_error(code, "ibv_post_send failed"));
  end.posted += works;
}

void BareLoop::poll(End& end) {
  std::array<ibv_wc, 32> completions;
  const int count = ibv_poll_cq(end.completions, completions.size(), completions.data());
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[static_cast<size_t>(i)];
    if (completion.status != IBV_WC_SUCCESS) {
      test::give_up(make_error(Status::kRemote, completion.status, "a completion has status %d",
                               completion.status));
    }
    if (completion.wr_id != kReceive) {
      end.done += completion.wr_id;
    } else {
      ++end.arrived;
      if (++end.receives_owed == 64) give_receives(end, std::exchange(end.receives_owed, 0));
    }
  }
}

void BareLoop::stream(uint32_t bytes, uint64_t works) {
  const uint64_t posted = from_.posted + works, arrived = to_.arrived + works;
  while (from_.done < posted || to_.arrived < arrived) {
    if (from_.posted < posted && from_.posted - from_.done + kChain <= kDepth) {
      post(from_, to_, bytes, kChain);
    }
    poll(from_);
    poll(to_);
  }
}

void BareLoop::ping_pong(uint32_t bytes, uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t there = to_.arrived + 1, back = from_.arrived + 1;
    post(from_, to_, bytes, 1);
    while (to_.arrived < there) poll(to_);
    post(to_, from_, bytes, 1);
    while (from_.arrived < back) poll(from_);
  }
  for (End* end : {&from_, &to_}) {
    while (end->done < end->posted) poll(*end);
  }
}

}  // namespace slime::bench
