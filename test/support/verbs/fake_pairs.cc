// How works of FakeVerbs' queue pairs move.

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "test/support/verbs/fake_verbs.h"

namespace slime::test {
namespace {

constexpr uint32_t kPsnMask = 0xffffff;
constexpr uint32_t kHalfPsn = 0x800000;

bool needs_receive(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

uint64_t now() { return SteadyClock::instance().now_ns(); }

}  // namespace

bool FakeVerbs::step() {
  const std::lock_guard lock(mutex_);
  std::vector<Pair*> waiting;
  for (const auto& [number, pair] : pairs_) {
    if (!pair->sends.empty()) waiting.push_back(pair.get());
  }
  std::shuffle(waiting.begin(), waiting.end(), random_);
  return std::ranges::any_of(waiting, [this](Pair* pair) { return advance(*pair); });
}

// The peer's queue pair, if packets reach it and it takes them.
FakeVerbs::Pair* FakeVerbs::peer_of(const Pair& pair) {
  const auto found = pairs_.find(pair.attributes.dest_qp_num);
  if (found == pairs_.end()) return nullptr;
  Pair& peer = *found->second;
  const Device &here = device_of(pair.base.context), &there = device_of(peer.base.context);
  const ibv_ah_attr& path = pair.attributes.ah_attr;
  const bool reached =
      here.link_up && there.link_up &&
      (path.is_global
           ? std::ranges::any_of(there.gids,
                                 [&](const ibv_gid& gid) {
                                   return std::memcmp(&gid, &path.grh.dgid, sizeof gid) == 0;
                                 })
           : path.dlid == there.lid);
  const bool takes = peer.base.state == IBV_QPS_RTR || peer.base.state == IBV_QPS_RTS;
  return reached && takes && peer.attributes.dest_qp_num == pair.base.qp_num ? &peer : nullptr;
}

void FakeVerbs::destroy_pair(ibv_qp* base) {
  --queues_.at(base->send_cq)->users;
  --queues_.at(base->recv_cq)->users;
  if (!options_.keeps_completions) {
    std::erase_if(queues_.at(base->recv_cq)->completions,
                  [&](const ibv_wc& each) { return each.qp_num == base->qp_num; });
  }
  show_writes(*pairs_.at(base->qp_num));
  pairs_.erase(base->qp_num);
}

// The first work of this queue pair, if it can move.
bool FakeVerbs::advance(Pair& pair) {
  Send& work = pair.sends.front();
  ibv_wc_status status = IBV_WC_SUCCESS;
  Pair* const peer = peer_of(pair);
  const uint32_t ahead = peer == nullptr ? 0 : (pair.next_psn - peer->expected_psn) & kPsnMask;
  if (fail_next_) {
    status = *std::exchange(fail_next_, std::nullopt);
  } else if (peer == nullptr || (ahead != 0 && ahead < kHalfPsn)) {
    if (wait_for_peer(pair)) return false;
    status = IBV_WC_RETRY_EXC_ERR;
  } else if (ahead == 0) {  // otherwise the peer has had it
    if (needs_receive(work.opcode) && peer->receives.empty()) {
      if (pair.attributes.rnr_retry == 7) return false;
      status = IBV_WC_RNR_RETRY_EXC_ERR;
    } else {
      status = carry_out(pair, *peer, work);
    }
  }
  pair.tried_ns = 0;
  pair.next_psn = (pair.next_psn + 1) & kPsnMask;
  const Send done = std::move(work);
  pair.sends.pop_front();
  complete_send(pair, done, status);
  if (status != IBV_WC_SUCCESS) break_pair(pair);
  return true;
}

bool FakeVerbs::wait_for_peer(Pair& pair) {
  if (pair.tried_ns == 0) pair.tried_ns = now();
  const uint64_t timeout_ns = uint64_t{4'096} << pair.attributes.timeout;
  return now() - pair.tried_ns < timeout_ns * (1U + pair.attributes.retry_cnt);
}

void FakeVerbs::show_writes(Pair& between) {
  show_writes_of(between);
  const auto peer = pairs_.find(between.attributes.dest_qp_num);
  if (peer == pairs_.end()) return;
  if (peer->second->attributes.dest_qp_num == between.base.qp_num) show_writes_of(*peer->second);
}

void FakeVerbs::show_writes_of(Pair& pair) {
  for (const Unseen& write : std::exchange(pair.unseen, {})) {
    std::memcpy(write.to, write.bytes.data(), write.bytes.size());
  }
}

ibv_wc_status FakeVerbs::read_remote(Pair& pair, Pair& peer, const Send& work) {
  if (work.bytes == 0) return IBV_WC_SUCCESS;
  const Place from =
      find_memory(peer.base.pd, work.key, true, work.address, work.bytes, IBV_ACCESS_REMOTE_READ);
  const bool allowed = peer.attributes.qp_access_flags & IBV_ACCESS_REMOTE_READ;
  if (!from.granted || !allowed) return IBV_WC_REM_ACCESS_ERR;
  const Place to = find_memory(pair.base.pd, work.pieces.at(0).lkey, false, work.pieces[0].addr,
                               work.bytes, IBV_ACCESS_LOCAL_WRITE);
  if (!to.granted) return IBV_WC_LOC_PROT_ERR;
  show_writes(pair);
  std::memcpy(to.data, from.data, work.bytes);
  return IBV_WC_SUCCESS;
}

ibv_wc_status FakeVerbs::carry_out(Pair& pair, Pair& peer, const Send& work) {
  if (work.opcode == IBV_WR_RDMA_READ) {
    const ibv_wc_status status = read_remote(pair, peer, work);
    if (status == IBV_WC_SUCCESS) peer.expected_psn = (peer.expected_psn + 1) & kPsnMask;
    if (status == IBV_WC_REM_ACCESS_ERR && &peer != &pair) break_pair(peer);
    return status;
  }
  std::vector<std::byte> bytes;
  const ibv_wc_status gathered = gather(pair, work, &bytes);
  if (gathered != IBV_WC_SUCCESS) return gathered;
  if (work.opcode != IBV_WR_SEND && work.bytes > 0) {
    const Place to = find_memory(peer.base.pd, work.key, true, work.address, work.bytes,
                                 IBV_ACCESS_REMOTE_WRITE);
    if (!to.granted || !(peer.attributes.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)) {
      if (&peer != &pair) break_pair(peer);
      return IBV_WC_REM_ACCESS_ERR;
    }
    pair.unseen.push_back({to.data, bytes});
  }
  if (needs_receive(work.opcode)) show_writes(pair);
  peer.expected_psn = (peer.expected_psn + 1) & kPsnMask;
  return needs_receive(work.opcode) ? receive(peer, work, bytes) : IBV_WC_SUCCESS;
}

ibv_wc_status FakeVerbs::gather(const Pair& pair, const Send& work, std::vector<std::byte>* bytes) {
  if (work.flags & IBV_SEND_INLINE) {
    *bytes = work.data;
    return IBV_WC_SUCCESS;
  }
  for (const ibv_sge& piece : work.pieces) {
    const Place from = find_memory(pair.base.pd, piece.lkey, false, piece.addr, piece.length, 0);
    if (!from.granted) return IBV_WC_LOC_PROT_ERR;
    bytes->insert(bytes->end(), from.data, from.data + piece.length);
  }
  return IBV_WC_SUCCESS;
}

// A message that its receive has no room for ends both queue pairs (IBTA, 9.9.3).
ibv_wc_status FakeVerbs::receive(Pair& peer, const Send& work,
                                 const std::vector<std::byte>& bytes) {
  const Receive taken = peer.receives.front();
  peer.receives.pop_front();
  ibv_wc completion = {};
  completion.wr_id = taken.id;
  completion.qp_num = peer.base.qp_num;
  completion.byte_len = work.bytes;
  completion.opcode = work.opcode == IBV_WR_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  if (work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    completion.imm_data = work.immediate;
    completion.wc_flags = IBV_WC_WITH_IMM;
  } else if (work.bytes > 0) {
    if (!taken.piece || taken.piece->length < work.bytes) {
      completion.status = IBV_WC_LOC_LEN_ERR;
    } else {
      const Place to = find_memory(peer.base.pd, taken.piece->lkey, false, taken.piece->addr,
                                   work.bytes, IBV_ACCESS_LOCAL_WRITE);
      if (!to.granted) completion.status = IBV_WC_LOC_PROT_ERR;
      if (to.granted) std::memcpy(to.data, bytes.data(), bytes.size());
    }
  }
  complete(peer.base.recv_cq, completion);
  if (completion.status == IBV_WC_SUCCESS) return IBV_WC_SUCCESS;
  break_pair(peer);
  return completion.status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR;
}

// The places that the completion sets free travel in byte_len, which sends do not use.
void FakeVerbs::complete_send(Pair& pair, const Send& work, ibv_wc_status status) {
  ++pair.unsignaled;
  if (status == IBV_WC_SUCCESS && !(work.flags & IBV_SEND_SIGNALED)) return;
  ++device_of(pair.base.context).counts.send_completions;
  ibv_wc completion = {};
  completion.wr_id = work.id;
  completion.status = status;
  completion.qp_num = pair.base.qp_num;
  completion.byte_len = std::exchange(pair.unsignaled, 0);
  completion.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x81;
  complete(pair.base.send_cq, completion);
}

void FakeVerbs::break_pair(Pair& pair) {
  pair.base.state = IBV_QPS_ERR;
  show_writes(pair);
  for (const Send& work : std::exchange(pair.sends, {})) {
    complete_send(pair, work, IBV_WC_WR_FLUSH_ERR);
  }
  for (const Receive& receive : std::exchange(pair.receives, {})) {
    ibv_wc completion = {};
    completion.wr_id = receive.id;
    completion.status = IBV_WC_WR_FLUSH_ERR;
    completion.qp_num = pair.base.qp_num;
    completion.opcode = IBV_WC_RECV;
    complete(pair.base.recv_cq, completion);
  }
}

}  // namespace slime::test
