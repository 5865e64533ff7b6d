#include "tools/perf/p2p/bare_end.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace slime::perf::p2p {
namespace {

constexpr uint64_t kReceive = UINT64_MAX;  // wr_id; others: the number, and how many works
constexpr int kCountBits = 16;
constexpr unsigned kPeerMay =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

}  // namespace

Result<std::unique_ptr<BareEnd>> BareEnd::open(verbs::VerbsRail& rail,
                                               std::span<std::byte> memory) {
  auto port = rail.port();
  if (!port) return fail(std::move(port.error()));
  MemoryRange range{memory.data(), memory.size()};
  range.rights = kRemoteRead | kRemoteWrite;
  auto keys = rail.register_memory(range);
  if (!keys) return fail(std::move(keys.error()));
  std::unique_ptr<BareEnd> end(new BareEnd(rail, std::move(*port), memory));
  end->keys_ = *keys;
  if (auto made = end->make(); !made) return fail(std::move(made.error()));
  return end;
}

BareEnd::~BareEnd() {
  pair_ = verbs::QueuePair();
  rail_.deregister_memory(keys_);
}

Result<void> BareEnd::make() {
  const RegionTable::Pin pin(rail_.regions(), keys_.local,
                             reinterpret_cast<uint64_t>(memory_.data()), memory_.size());
  local_key_ = static_cast<uint32_t>(pin.handle());
  auto events = nic().create_event_channel();
  if (!events) return fail(std::move(events.error()));
  events_ = std::move(*events);
  completions_ = nic().create_completion_queue(kSends + verbs::kReceives, events_.get());
  if (completions_ == nullptr) return fail(system_error(errno, "ibv_create_cq"));
  auto pair = verbs::QueuePair::create(port_, nic().pd(), completions_.get(),
                                       {kSends, verbs::kReceives, verbs::kInlineBytes});
  if (!pair) return fail(std::move(pair.error()));
  pair_ = std::move(*pair);
  const auto pkey_index = static_cast<uint16_t>(rail_.settings().pkey_index);
  if (auto done = pair_.initialize(pkey_index, kPeerMay); !done) return done;
  receives_owed_ = verbs::kReceives;
  return give_receives();
}

BareEnd::Name BareEnd::name() const {
  return Name{{pair_.number(), 0},
              port_->gid.gid,
              port_->lid,
              static_cast<uint8_t>(port_->mtu),
              nic().reads_of_peer(),
              static_cast<uint32_t>(keys_.remote),
              reinterpret_cast<uint64_t>(memory_.data())};
}

Result<void> BareEnd::connect(const Name& peer) {
  peer_ = peer;
  verbs::Path path = verbs::Path::from(*port_, rail_.settings(), kNoTrafficClass);
  path.gid = peer.gid;
  path.lid = peer.lid;
  path.mtu = std::min(port_->mtu, static_cast<ibv_mtu>(peer.mtu));
  path.reads = std::min(nic().reads(), peer.reads_of_peer);
  path.reads_of_peer = nic().reads_of_peer();
  if (auto done = pair_.receive_from(path, peer.pair); !done) return done;
  return pair_.send_to(path, 0);
}

ibv_sge BareEnd::piece(uint64_t offset, uint32_t bytes) const {
  return {reinterpret_cast<uint64_t>(memory_.data() + offset), bytes, local_key_};
}

ibv_send_wr BareEnd::work(ibv_wr_opcode opcode, ibv_sge* piece) const {
  ibv_send_wr work = {};
  work.sg_list = piece;
  work.num_sge = 1;
  work.opcode = opcode;
  if (opcode != IBV_WR_RDMA_READ && piece->length <= pair_.inline_bytes()) {
    work.send_flags = IBV_SEND_INLINE;
  }
  const uint64_t offset = piece->addr - reinterpret_cast<uint64_t>(memory_.data());
  work.wr.rdma.remote_addr = peer_.address + offset;
  work.wr.rdma.rkey = peer_.key;
  return work;
}

Result<void> BareEnd::post(std::span<ibv_send_wr> works, uint64_t number) {
  for (size_t i = 0; i + 1 < works.size(); ++i) works[i].next = &works[i + 1];
  works.back().next = nullptr;
  works.back().wr_id = number << kCountBits | works.size();
  works.back().send_flags |= IBV_SEND_SIGNALED;
  if (const int code = pair_.post(works.data()); code != 0) {
    return fail(system_error(code, "ibv_post_send"));
  }
  unfinished_ += static_cast<uint32_t>(works.size());
  return {};
}

Result<void> BareEnd::give_receives() {
  std::array<ibv_recv_wr, verbs::kReceiveBatch> requests = {};
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].wr_id = kReceive;
    requests[i].next = i + 1 < requests.size() ? &requests[i + 1] : nullptr;
  }
  for (; receives_owed_ >= verbs::kReceiveBatch; receives_owed_ -= verbs::kReceiveBatch) {
    ibv_recv_wr* refused = nullptr;
    const int code = ibv_post_recv(pair_.get(), requests.data(), &refused);
    if (code != 0) return fail(system_error(code, "ibv_post_recv"));
  }
  return {};
}

Result<size_t> BareEnd::poll(std::span<Event> events) {
  std::array<ibv_wc, 32> completions;
  const int most = static_cast<int>(std::min(events.size(), completions.size()));
  const int count = ibv_poll_cq(completions_.get(), most, completions.data());
  if (count < 0) return fail(system_error(EIO, "ibv_poll_cq"));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const ibv_wc& completion = completions[i];
    if (completion.status != IBV_WC_SUCCESS) {
      return fail(Status::kRemote, "a work of the plain loop ended: %s",
                  nic().verbs().wc_status_str(completion.status));
    }
    if (completion.wr_id == kReceive) {
      ++receives_owed_;
      events[i] = {true, ntohl(completion.imm_data), 1};
    } else {
      const uint32_t works = completion.wr_id & ((1U << kCountBits) - 1);
      unfinished_ -= works;
      events[i] = {false, completion.wr_id >> kCountBits, works};
    }
  }
  if (auto given = give_receives(); !given) return fail(std::move(given.error()));
  return static_cast<size_t>(count);
}

Result<void> BareEnd::arm() {
  nic().drop_events(*events_);
  const int code = ibv_req_notify_cq(completions_.get(), 0);
  return code == 0 ? Result<void>() : fail(system_error(code, "ibv_req_notify_cq"));
}

void BareEnd::sleep(int milliseconds) const {
  pollfd waited{events_->fd, POLLIN, 0};
  (void)::poll(&waited, 1, milliseconds);
}

}  // namespace slime::perf::p2p
