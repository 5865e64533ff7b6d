// The data path of a verbs channel.
#include "transports/verbs/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "settings/times.h"
#include "transports/channel_common.h"
#include "transports/verbs/rail.h"

namespace slime::verbs {
namespace {

constexpr uint64_t kWatchPauseNs = 20'000'000;
constexpr int kPolledAtOnce = 64;

}  // namespace

Status VerbsChannel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  if (state_ != State::kReady) {
    if (state_ < State::kReady) fail_with(posted_early(rail_.caps()), State::kFailed);
    return failure_.status;
  }
  const size_t room = rail_.caps().send_queue_depth - outstanding_;
  works = works.first(std::min({works.size(), room, sends_.size()}));
  if (works.empty()) return Status::kOk;
  Lane& lane = lanes_[next_lane_];
  uint64_t bytes = 0;
  for (size_t i = 0; i < works.size(); ++i) {
    const auto position = lane.posted + static_cast<uint32_t>(i);
    if (prepare_work(works[i], lane, position, i) != Status::kOk) return failure_.status;
    bytes += works[i].length;
  }
  const size_t last = works.size() - 1;
  sends_[last].next = nullptr;
  sends_[last].send_flags |= IBV_SEND_SIGNALED;
  lane.unsignaled = 0;
  ibv_send_wr* refused = sends_.data();
  const int code = lane.pair.post(sends_.data(), &refused);
  if (code != 0) {
    *taken = static_cast<size_t>(refused - sends_.data());
    fail_with(
        system_error(code, "%s: ibv_post_send of %zu works failed", where().c_str(), works.size()),
        State::kBroken);
    return failure_.status;
  }
  lane.posted += static_cast<uint32_t>(works.size());
  outstanding_ += static_cast<uint32_t>(works.size());
  next_lane_ = next_lane_ + 1 == lanes_.size() ? 0 : next_lane_ + 1;
  counters.doorbells.add();
  counters.works.add(works.size());
  counters.bytes_sent.add(bytes);
  *taken = works.size();
  return Status::kOk;
}

// The NIC takes what is inline without a look at its key, and it knows keys of 32 bits only.
Status VerbsChannel::prepare_work(const Work& work, Lane& lane, uint32_t position, size_t index) {
  ibv_send_wr& request = sends_[index];
  ibv_sge& piece = pieces_[index];
  request.sg_list = &piece;
  request.num_sge = work.length > 0 ? 1 : 0;
  request.next = index + 1 < sends_.size() ? &sends_[index + 1] : nullptr;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = __builtin_bswap32(work.immediate);
  const auto lane_index = static_cast<uint8_t>(&lane - lanes_.data());
  request.wr_id = WorkId{WorkId::Kind::kWorks, lane_index, 0, position}.pack();
  const bool signal = ++lane.unsignaled == kSignalEvery;
  if (signal) lane.unsignaled = 0;
  request.send_flags = signal ? IBV_SEND_SIGNALED : 0;
  request.wr.rdma.remote_addr = work.length > 0 ? work.remote_address : 0;
  request.wr.rdma.rkey = work.length > 0 ? static_cast<uint32_t>(work.remote_key) : 0;
  lane.cookies[position % lane.cookies.size()] = work.cookie;
  if (work.length == 0) return Status::kOk;
  const RegionTable::Pin pin(rail_.regions(), work.local_key,
                             reinterpret_cast<uint64_t>(work.local), work.length);
  if (pin.access() != RegionTable::Access::kGranted || work.remote_key >> 32 != 0 ||
      work.length > rail_.caps().max_message_bytes) {
    fail_with(work_error(work), State::kBroken);
    return failure_.status;
  }
  piece = {reinterpret_cast<uint64_t>(work.local), work.length,
           static_cast<uint32_t>(pin.handle())};
  // The processor copies what is inline, and cannot read the memory of a device.
  const bool may_copy = pin.kind() == MemoryKind::kHost;
  if (may_copy && work.length <= lane.pair.inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
  return Status::kOk;
}

Status VerbsChannel::poll(std::span<Done> done, size_t* count) {
  *count = 0;
  counters.polls.add();
  if (state_ < State::kReady || state_ == State::kFailed) {
    return state_ == State::kFailed ? failure_.status : Status::kOk;
  }
  if (!kept_.empty()) {
    for (; !kept_.empty() && *count < done.size(); kept_.pop_front()) {
      done[(*count)++] = kept_.front();
    }
    return Status::kOk;
  }
  if (state_ == State::kFenced) return Status::kOk;
  // What is done already has at most half of the room, so that neither kind starves the other.
  *count = take_sent(done.first((done.size() + 1) / 2));
  std::array<ibv_wc, kPolledAtOnce> completions;
  const auto room = static_cast<int>(std::min<size_t>(done.size() - *count, completions.size()));
  const int polled = room > 0 ? ibv_poll_cq(completions_.get(), room, completions.data()) : 0;
  if (polled < 0) {
    fail_with(system_error(errno, "%s: ibv_poll_cq failed", where().c_str()), State::kBroken);
  }
  for (int i = 0; i < polled; ++i) take(completions[static_cast<size_t>(i)], done, count);
  *count += take_sent(done.subspan(*count));
  if (*count > 0) return Status::kOk;
  counters.empty_polls.add();
  if (state_ == State::kReady && polled <= 0) watch(steady_now_ns());
  if (state_ == State::kBroken && polled <= 0 && !done.empty()) state_ = State::kFailed;
  return state_ == State::kFailed ? failure_.status : Status::kOk;
}

bool VerbsChannel::none_under_way() {
  (void)take_all(completions_.get(), [this](const ibv_wc& completion) {
    const WorkId id = WorkId::unpack(completion.wr_id);
    const bool done = id.kind == WorkId::Kind::kWorks && completion.status == IBV_WC_SUCCESS;
    if (done) complete(lanes_[id.lane], id.position);
  });
  return std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.done == lane.posted; });
}

Done VerbsChannel::take_arrival(const ibv_wc& completion) {
  counters.arrivals.add();
  counters.bytes_received.add(completion.byte_len);
  return slime::arrived(__builtin_bswap32(completion.imm_data), completion.byte_len);
}

size_t VerbsChannel::take_sent(std::span<Done> done) {
  size_t count = 0;
  for (Lane& lane : lanes_) {
    for (; lane.reported != lane.done && count < done.size(); ++lane.reported) {
      done[count++] = slime::sent(lane.cookies[lane.reported % lane.cookies.size()]);
      --outstanding_;
    }
  }
  return count;
}

void VerbsChannel::take(const ibv_wc& completion, std::span<Done> done, size_t* count) {
  const WorkId id = WorkId::unpack(completion.wr_id);
  if (completion.status != IBV_WC_SUCCESS) {
    if (id.kind == WorkId::Kind::kReceive) --lanes_[id.lane].receives;
    if (state_ == State::kReady)
      fail_with(prefixed(where(), completion_error(completion)), State::kBroken);
    return;
  }
  completed_ = true;
  Lane& lane = lanes_[id.lane];
  switch (id.kind) {
    case WorkId::Kind::kWorks:
      complete(lane, id.position);
      return;
    case WorkId::Kind::kHello:
      return;
    case WorkId::Kind::kKeepAlive:
      keeping_alive_ = false;
      return;
    case WorkId::Kind::kReceive:
      break;
  }
  --lane.receives;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0) {
    take_close(lane);
    return;
  }
  done[(*count)++] = take_arrival(completion);
  if (lane.receives + kReceiveBatch <= kReceives && state_ == State::kReady) {
    (void)post_receives(lane, kReceiveBatch, false);
  }
}

// A NIC that refuses a chain in the middle has taken the first part of it: the post() failed, and
// these works are not kSent.
void VerbsChannel::complete(Lane& lane, uint32_t position) {
  const uint32_t done = position + 1;
  const bool posted = static_cast<int32_t>(done - lane.posted) <= 0;
  lane.done = posted ? done : lane.posted;
}

void VerbsChannel::take_close(Lane& lane) {
  lane.has_closed = true;
  if (state_ != State::kReady || !std::ranges::all_of(lanes_, &Lane::has_closed)) return;
  fail_with(prefixed(where(), closed_by_peer(undelivered_works())), State::kBroken);
}

bool VerbsChannel::post_receives(Lane& lane, uint32_t count, bool with_hello) {
  ibv_sge piece = hellos_->piece(hellos_->value.in);
  const auto lane_index = static_cast<uint8_t>(&lane - lanes_.data());
  for (uint32_t i = 0; i < count; ++i) {
    receives_[i] = {};
    receives_[i].wr_id = WorkId{WorkId::Kind::kReceive, lane_index, 0, 0}.pack();
    receives_[i].next = i + 1 < count ? &receives_[i + 1] : nullptr;
  }
  if (with_hello) {
    receives_[0].sg_list = &piece;
    receives_[0].num_sge = 1;
  }
  ibv_recv_wr* refused = nullptr;
  const int code = ibv_post_recv(lane.pair.get(), receives_.data(), &refused);
  if (code != 0) errno = code;
  for (const ibv_recv_wr* at = receives_.data(); at != (code == 0 ? nullptr : refused);
       at = at->next) {
    ++lane.receives;
  }
  return code == 0;
}

// A queue pair with nothing to send is never told that its peer has ended. One that has works under
// way needs no deadline of ours: the NIC gives up by itself when the peer's NIC is silent
// (NCCL_SLIME_IB_TIMEOUT), and a peer that is stopped may keep us waiting.
void VerbsChannel::watch(uint64_t now_ns) {
  if (now_ns < watch_due_ns_) return;
  watch_due_ns_ = now_ns + kWatchPauseNs;
  auto sound = rail_.nic().check_health();
  if (sound) sound = check_port();
  if (!sound) {
    fail_with(prefixed(where(), std::move(sound.error())), State::kBroken);
    return;
  }
  if (completed_ || last_completed_ns_ == 0) last_completed_ns_ = now_ns;
  completed_ = false;
  const uint64_t pause_ns = seconds_to_ns(rail_.settings().peer_timeout) / 4;
  const bool quiet = outstanding_ == 0 && !keeping_alive_;
  if (quiet && now_ns - last_completed_ns_ > pause_ns) keep_alive(now_ns);
}

// A port that went down and came back is not a change: the NIC sends again what was lost.
Result<void> VerbsChannel::check_port() {
  const std::string change = find_new_change(*port_, &changes_);
  if (change.empty()) return {};
  return fail(make_error(Status::kSystem, 0, "%s; a new channel takes what the port has now",
                         change.c_str()));
}

// A write of no bytes: the peer's NIC acknowledges it, and nothing else happens. Lanes take turns,
// as each may take another path.
void VerbsChannel::keep_alive(uint64_t now_ns) {
  ibv_send_wr request = {};
  const uint8_t lane = kept_alive_++ % lanes_.size();
  request.wr_id = WorkId{WorkId::Kind::kKeepAlive, lane, 0, 0}.pack();
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  keeping_alive_ = lanes_[lane].pair.post(&request) == 0;
  last_completed_ns_ = now_ns;
}

void VerbsChannel::fence() {
  if (state_ == State::kFenced) return;
  for (Lane& lane : lanes_) lane.pair.stop();
  drain();
  fail_with(fenced_off(where()), State::kFenced);
  lanes_.clear();  // the NIC uses them no more when this returns
}

// Each receive that is posted completes, with what came or as flushed.
void VerbsChannel::drain() {
  const uint64_t end_ns = steady_now_ns() + times::kFenceDrain;
  const auto is_left = [](const Lane& lane) { return lane.receives > 0; };
  bool late = false;  // it ends when a look after the deadline has found nothing
  for (int polled = 1; std::ranges::any_of(lanes_, is_left) && (polled > 0 || !late);) {
    late = steady_now_ns() >= end_ns;
    std::array<ibv_wc, kPolledAtOnce> completions;
    polled = ibv_poll_cq(completions_.get(), kPolledAtOnce, completions.data());
    for (int i = 0; i < polled; ++i) {
      const ibv_wc& completion = completions[static_cast<size_t>(i)];
      const WorkId id = WorkId::unpack(completion.wr_id);
      if (id.kind != WorkId::Kind::kReceive) continue;
      --lanes_[id.lane].receives;
      if (completion.status != IBV_WC_SUCCESS || !(completion.wc_flags & IBV_WC_WITH_IMM)) continue;
      kept_.push_back(take_arrival(completion));
    }
  }
}

}  // namespace slime::verbs
