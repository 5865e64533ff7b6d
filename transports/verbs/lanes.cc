#include "transports/verbs/lanes.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "transports/verbs/poller.h"
#include "transports/verbs/rail.h"

namespace slime::verbs {
namespace {

constexpr uint32_t kSignalEvery = 32;
constexpr uint32_t kOwnSends = 4;  // hello, keep-alive, read behind, close
constexpr unsigned kPeerMay = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

ibv_wr_opcode opcode_of(const Work& work) {
  switch (work.opcode) {
    case Opcode::kWriteWithImmediate:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Opcode::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Opcode::kRead:
      return IBV_WR_RDMA_READ;
  }
  __builtin_unreachable();
}

}  // namespace

Lanes::Lanes(VerbsRail& rail, const ChannelDepth& depth)
    : rail_(rail),
      depth_(depth),
      receives_(std::min(4 * depth.writes, kReceives)),
      receive_batch_(std::min(receives_ / 4, kReceiveBatch)) {}

Result<void> Lanes::open_completions(uint32_t places, VerbsPoller* poller, uint64_t tag) {
  if (poller != nullptr) {
    auto shared = poller->add(places, tag);
    if (!shared) return fail(std::move(shared.error()));
    completions_.emplace(std::move(*shared));
    return {};
  }
  auto own = rail_.nic().create_completion_queue(places);
  if (own == nullptr) {
    return fail(system_error(errno,
                             "ibv_create_cq for %u completions failed (max_cqe is %d); set "
                             "NCCL_SLIME_QPS_PER_RAIL lower, and see %s",
                             places, rail_.nic().attributes().max_cqe, limit_behind(errno)));
  }
  completions_.emplace(std::move(own));
  return {};
}

Result<void> Lanes::open(const std::shared_ptr<const Port>& port, VerbsPoller* poller,
                         uint64_t tag) {
  const auto lanes = static_cast<uint32_t>(rail_.settings().qps_per_rail);
  const uint32_t depth = depth_.writes + depth_.reads;
  const uint32_t places = lanes * (depth + kOwnSends + receives_);
  if (auto opened = open_completions(places, poller, tag); !opened) return opened;
  auto hellos = Registered<Hellos>::create(rail_.nic(), rail_.nic().pd());
  if (!hellos) return fail(std::move(hellos.error()));
  hellos_ = std::move(*hellos);
  for (uint32_t i = 0; i < lanes; ++i) {
    auto pair = QueuePair::create(port, rail_.nic().pd(), completions_->queue(),
                                  {depth + kOwnSends, receives_, kInlineBytes});
    if (!pair) return fail(std::move(pair.error()));
    const auto psn = random_psn();
    if (!psn) return fail(psn.error());
    Lane& lane = lanes_.emplace_back();
    lane.pair = std::move(*pair);
    lane.pair.set_place(*completions_);
    lane.first_psn = *psn;
    lane.works.resize(std::bit_ceil(depth));  // positions wrap
  }
  sends_.resize(rail_.caps().max_batch);
  pieces_.resize(rail_.caps().max_batch);
  for (Lane& lane : lanes_) {
    if (auto prepared = prepare(lane); !prepared) return prepared;
  }
  return {};
}

// Receives may be posted from INIT on; works of the peer may come as soon as it is in RTR.
Result<void> Lanes::prepare(Lane& lane) {
  const auto pkey_index = static_cast<uint16_t>(rail_.settings().pkey_index);
  if (auto made = lane.pair.initialize(pkey_index, kPeerMay); !made) return made;
  const bool first = &lane == &lanes_.front();
  for (uint32_t posted = 0; posted < receives_; posted += receive_batch_) {
    if (!post_receives(lane, receive_batch_, first && posted == 0)) {
      return fail(system_error(errno, "ibv_post_recv of %u receives failed", receives_));
    }
  }
  return {};
}

ClosingPairs Lanes::close() {
  std::vector<QueuePair> pairs;
  for (Lane& lane : lanes_) pairs.push_back(std::move(lane.pair));
  lanes_.clear();
  return {std::move(*completions_), std::move(hellos_), std::move(pairs)};
}

void Lanes::set_readable(const Readable& of_peer) {
  read_behind_piece_ = hellos_->piece(hellos_->value.behind_writes);
  read_behind_.sg_list = &read_behind_piece_;
  read_behind_.num_sge = 1;
  read_behind_.opcode = IBV_WR_RDMA_READ;
  read_behind_.send_flags = IBV_SEND_SIGNALED;
  read_behind_.wr.rdma.remote_addr = of_peer.address;
  read_behind_.wr.rdma.rkey = of_peer.key;
}

size_t Lanes::count_that_fit(std::span<const Work> works) const {
  works = works.first(std::min(works.size(), sends_.size()));
  return slime::count_that_fit(works, depth_.writes - writes_, depth_.reads - reads_);
}

uint64_t Lanes::undelivered() const {
  uint64_t count = 0;
  for (const Lane& lane : lanes_) count += lane.posted - lane.done;
  return count;
}

bool Lanes::none_under_way() {
  (void)take_all(*completions_, [this](const ibv_wc& completion) {
    const WorkId id = WorkId::unpack(completion.wr_id);
    const bool done = id.kind == WorkId::Kind::kWorks && completion.status == IBV_WC_SUCCESS;
    if (done) complete(id);
  });
  return undelivered() == 0;
}

size_t Lanes::chain(std::span<const Work> works) {
  Lane& lane = lanes_[next_lane_];
  chained_reads_ = chained_silent_ = 0;
  for (size_t i = 0; i < works.size(); ++i) {
    if (!prepare_work(works[i], lane, lane.posted + static_cast<uint32_t>(i), i)) return i;
  }
  return works.size();
}

// The NIC takes what is inline without a look at its key, and it knows keys of 32 bits only: both
// are checked here.
bool Lanes::prepare_work(const Work& work, Lane& lane, uint32_t position, size_t index) {
  ibv_send_wr& request = sends_[index];
  ibv_sge& piece = pieces_[index];
  request.sg_list = &piece;
  request.num_sge = work.length > 0 ? 1 : 0;
  request.next = index + 1 < sends_.size() ? &sends_[index + 1] : nullptr;
  request.opcode = opcode_of(work);
  request.imm_data = __builtin_bswap32(work.immediate);
  request.wr_id = id_of(WorkId::Kind::kWorks, lane, position).pack();
  const bool signal = ++lane.unsignaled == kSignalEvery;
  if (signal) lane.unsignaled = 0;
  request.send_flags = signal ? IBV_SEND_SIGNALED : 0;
  request.wr.rdma.remote_addr = work.length > 0 ? work.remote_address : 0;
  request.wr.rdma.rkey = work.length > 0 ? static_cast<uint32_t>(work.remote_key) : 0;
  const bool is_read = work.opcode == Opcode::kRead;
  chained_reads_ += is_read;
  chained_silent_ += work.opcode == Opcode::kWrite;
  work_at(lane, position) = {work.cookie, work.opcode};
  if (work.length == 0) return true;
  const RegionTable::Pin pin(rail_.regions(), work.local_key,
                             reinterpret_cast<uint64_t>(work.local), work.length);
  if (pin.access() != RegionTable::Access::kGranted || work.remote_key >> 32 != 0 ||
      work.length > rail_.caps().max_message_bytes) {
    return false;
  }
  piece = {reinterpret_cast<uint64_t>(work.local), work.length,
           static_cast<uint32_t>(pin.handle())};
  // The processor copies what is inline, and cannot read the memory of a device.
  const bool may_copy = pin.kind() == MemoryKind::kHost && !is_read;
  if (may_copy && work.length <= lane.pair.inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
  return true;
}

int Lanes::post_chain(size_t works, size_t* taken) {
  Lane& lane = lanes_[next_lane_];
  sends_[works - 1].next = nullptr;
  sends_[works - 1].send_flags |= IBV_SEND_SIGNALED;
  lane.unsignaled = 0;
  const uint32_t end = lane.posted + static_cast<uint32_t>(works);
  const bool reads_behind = chained_silent_ > 0 && !lane.reads_behind;
  if (reads_behind) sends_[works - 1].next = read_behind(lane, end);
  ibv_send_wr* refused = sends_.data();
  if (const int code = lane.pair.post(sends_.data(), &refused); code != 0) {
    const bool all = refused == &read_behind_;
    *taken = refused == nullptr ? 0 : all ? works : static_cast<size_t>(refused - sends_.data());
    return code;
  }
  *taken = works;
  lane.posted = end;
  if (chained_silent_ > 0) lane.silent = end;
  lane.reads_behind |= reads_behind;
  reads_ += chained_reads_;
  writes_ += static_cast<uint32_t>(works) - chained_reads_;
  SLIME_CHECK(writes_ <= depth_.writes && reads_ <= depth_.reads);
  next_lane_ = next_lane_ + 1 == lanes_.size() ? 0 : next_lane_ + 1;
  return 0;
}

ibv_send_wr* Lanes::read_behind(const Lane& lane, uint32_t end) {
  read_behind_.wr_id = id_of(WorkId::Kind::kReadBehind, lane, end).pack();
  return &read_behind_;
}

int Lanes::take_read_behind(const WorkId& id) {
  Lane& lane = lanes_[id.lane];
  SLIME_CHECK(lane.reads_behind && static_cast<int32_t>(lane.posted - id.position) >= 0);
  lane.visible = id.position;
  lane.reads_behind = static_cast<int32_t>(lane.silent - lane.visible) > 0;
  return lane.reads_behind ? lane.pair.post(read_behind(lane, lane.posted)) : 0;
}

int Lanes::post_hello() {
  ibv_sge piece = hellos_->piece(hellos_->value.out);
  ibv_send_wr request = {};
  request.wr_id = id_of(WorkId::Kind::kHello, lanes_[0]).pack();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  return lanes_[0].pair.post(&request);
}

// A write of no bytes: the peer's NIC acknowledges it, and nothing else happens.
int Lanes::post_keep_alive(size_t lane) {
  ibv_send_wr request = {};
  request.wr_id = id_of(WorkId::Kind::kKeepAlive, lanes_[lane]).pack();
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  return lanes_[lane].pair.post(&request);
}

// A NIC that refuses a chain in the middle has taken the first part of it, which `posted` does not
// count: that post() failed, and these works are not kSent.
void Lanes::complete(Lane& lane, uint32_t end) {
  if (static_cast<int32_t>(end - lane.posted) > 0) end = lane.posted;
  SLIME_CHECK(static_cast<int32_t>(end - lane.done) >= 0);
  unreported_ += end - lane.done;
  lane.done = end;
}

bool Lanes::reports(const Lane& lane) {
  if (lane.reported == lane.done) return false;
  const PostedWork& oldest = lane.works[lane.reported & (lane.works.size() - 1)];
  return oldest.opcode != Opcode::kWrite || static_cast<int32_t>(lane.visible - lane.reported) > 0;
}

size_t Lanes::take_done(std::span<Done> done) {
  size_t count = 0;
  uint32_t reads = 0;
  for (Lane& lane : lanes_) {
    for (; reports(lane) && count < done.size(); ++lane.reported) {
      const PostedWork& work = work_at(lane, lane.reported);
      done[count++] = slime::sent(work.cookie);
      reads += work.opcode == Opcode::kRead;
    }
    if (static_cast<int32_t>(lane.reported - lane.visible) > 0) lane.visible = lane.reported;
  }
  reads_ -= reads;
  writes_ -= static_cast<uint32_t>(count) - reads;
  unreported_ -= static_cast<uint32_t>(count);
  return count;
}

bool Lanes::give_back_receives(Lane& lane) {
  while (lane.receives + receive_batch_ <= receives_) {
    if (!post_receives(lane, receive_batch_)) return false;
  }
  return true;
}

bool Lanes::post_receives(Lane& lane, uint32_t count, bool with_hello) {
  ibv_sge piece = hellos_->piece(hellos_->value.in);
  for (uint32_t i = 0; i < count; ++i) {
    receive_chain_[i] = {};
    receive_chain_[i].wr_id = id_of(WorkId::Kind::kReceive, lane).pack();
    receive_chain_[i].next = i + 1 < count ? &receive_chain_[i + 1] : nullptr;
  }
  if (with_hello) {
    receive_chain_[0].sg_list = &piece;
    receive_chain_[0].num_sge = 1;
  }
  ibv_recv_wr* refused = receive_chain_.data();
  const int code = ibv_post_recv(lane.pair.get(), receive_chain_.data(), &refused);
  if (code != 0) errno = code;
  if (refused == nullptr) refused = receive_chain_.data();
  lane.receives += code == 0 ? count : static_cast<uint32_t>(refused - receive_chain_.data());
  return code == 0;
}

}  // namespace slime::verbs
