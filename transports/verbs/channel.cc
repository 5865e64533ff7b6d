#include "transports/verbs/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "settings/times.h"
#include "transports/verbs/poller.h"
#include "transports/verbs/rail.h"

namespace slime::verbs {
namespace {

constexpr int kPolledAtOnce = 64;

// With these the peer's NIC refuses a work. It has carried out what was posted before on the lane.
bool is_refusal(ibv_wc_status status) {
  return status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
         status == IBV_WC_REM_OP_ERR;
}

std::string first_pair(const Endpoint& end) {
  char text[32];
  std::snprintf(text, sizeof text, " (qp 0x%x)", end.names[0].number);
  return text;
}

}  // namespace

Result<std::unique_ptr<Channel>> VerbsChannel::open(VerbsRail& rail,
                                                    const ChannelOptions& options) {
  auto port = rail.port();
  if (!port) return fail(std::move(port.error()));
  std::unique_ptr<VerbsChannel> channel(new VerbsChannel(rail, options, *port));
  auto* const poller = static_cast<VerbsPoller*>(options.poller);
  auto opened = channel->lanes_.open(*port, poller, options.tag);
  if (opened) opened = channel->setup_.open();
  if (!opened) return fail(prefixed(rail.caps(), std::move(opened.error())));
  return channel;
}

VerbsChannel::VerbsChannel(VerbsRail& rail, const ChannelOptions& options,
                           std::shared_ptr<const Port> port)
    : rail_(rail),
      on_poller_(options.poller != nullptr),
      lanes_(rail, ChannelDepth(rail.caps(), options.depth)),
      setup_(rail, options, port, lanes_),
      watch_(rail, port) {}

// Works of the peer that begin later are refused, as registered memory may soon be in use for
// something else. The same holds for the memory of works that are under way: with such works the
// queue pairs are destroyed at once, and the peer's NIC reports that to the peer.
VerbsChannel::~VerbsChannel() {
  disarm();
  const auto refuse_works = [](Lane& lane) { return lane.pair.refuse_works(); };
  if (state_ == State::kReady && lanes_.none_under_way() &&
      std::ranges::all_of(lanes_.all(), refuse_works)) {
    rail_.closing().add(lanes_.close());
  }
}

std::string VerbsChannel::peer_name() const {
  return to_string(setup_.peer().gid) + first_pair(setup_.peer());
}

std::string VerbsChannel::where() const {
  return "rail " + rail_.caps().name + first_pair(setup_.own()) + " to " + peer_name();
}

void VerbsChannel::fail_with(Error error, State state) {
  if (state_ < State::kBroken) failure_ = std::move(error);
  state_ = state;
}

Status VerbsChannel::connect(const ChannelAddress& peer) {
  if (state_ == State::kReady) return Status::kOk;
  if (state_ > State::kReady) return failure_.status;
  Result<void> done = watch_.check_port();
  if (done) done = setup_.begin(peer);
  const bool late = setup_.is_late();  // asked before the look at completions (base/deadline.h)
  ibv_wc completion;
  int polled = 1;
  while (done && state_ == State::kSetUp && polled == 1) {
    polled = lanes_.completions().poll({&completion, 1});
    if (polled == 1) done = take_setup_completion(completion);
    if (polled < 0) done = fail(lanes_.completions().failure());
  }
  if (done && state_ == State::kReady) return Status::kOk;
  if (done && !late) return Status::kAgain;
  fail_with(prefixed(where(), done ? setup_.timeout_error() : std::move(done.error())),
            State::kFailed);
  return failure_.status;
}

Result<void> VerbsChannel::take_setup_completion(const ibv_wc& completion) {
  const WorkId id = WorkId::unpack(completion.wr_id);
  Lane& lane = lanes_[id.lane];
  lane.receives -= id.kind == WorkId::Kind::kReceive;
  if (completion.status != IBV_WC_SUCCESS) {
    return fail(completion_error(rail_.nic(), completion, lanes_.undelivered()));
  }
  if (id.kind != WorkId::Kind::kReceive) return {};
  if (id.lane == 0) {
    auto taken = setup_.take_hello(completion);
    if (taken) state_ = State::kReady;
    return taken;
  }
  // The peer has our hello and uses all lanes, or has closed already: this lane was faster than the
  // first with its hello.
  if (completion.wc_flags & IBV_WC_WITH_IMM) {
    kept_.push_back(take_arrival(completion));
  } else {
    lane.has_closed = true;
  }
  return {};
}

Status VerbsChannel::post(std::span<const Work> works, size_t* taken) {
  *taken = 0;
  if (state_ != State::kReady) {
    if (state_ == State::kSetUp) fail_with(posted_early(rail_.caps()), State::kFailed);
    return failure_.status;
  }
  works = works.first(lanes_.count_that_fit(works));
  if (works.empty()) return Status::kOk;
  if (const size_t valid = lanes_.chain(works); valid < works.size()) {
    fail_with(prefixed(where(), work_error(rail_.caps(), works[valid])), State::kBroken);
    return failure_.status;
  }
  if (const int code = lanes_.post_chain(works.size(), taken); code != 0) {
    fail_with(
        system_error(code, "%s: ibv_post_send of %zu works failed", where().c_str(), works.size()),
        State::kBroken);
    return failure_.status;
  }
  uint64_t bytes = 0;
  for (const Work& work : works) bytes += work.length;
  counters.doorbells.add();
  counters.works.add(works.size());
  counters.bytes_sent.add(bytes);
  return Status::kOk;
}

Status VerbsChannel::poll(std::span<Done> done, size_t* count) {
  *count = 0;
  counters.polls.add();
  if (state_ == State::kSetUp || state_ == State::kFailed) {
    return state_ == State::kFailed ? failure_.status : Status::kOk;
  }
  if (!kept_.empty()) {
    for (; !kept_.empty() && *count < done.size(); kept_.pop_front()) {
      done[(*count)++] = kept_.front();
    }
    return Status::kOk;
  }
  if (state_ == State::kFenced) return Status::kOk;
  const bool was_broken = state_ == State::kBroken;  // before the look at completions
  // What is done already has at most half of the room, so that neither kind starves the other.
  *count = lanes_.take_sent(done.first((done.size() + 1) / 2));
  std::array<ibv_wc, kPolledAtOnce> completions;
  const size_t room = std::min<size_t>(done.size() - *count, completions.size());
  const int polled = room > 0 ? lanes_.completions().poll(std::span(completions).first(room)) : 0;
  if (polled < 0) fail_with(prefixed(where(), lanes_.completions().failure()), State::kBroken);
  for (int i = 0; i < polled; ++i) take(completions[static_cast<size_t>(i)], done, count);
  *count += lanes_.take_sent(done.subspan(*count));
  if (*count > 0) return Status::kOk;
  counters.empty_polls.add();
  if (state_ == State::kReady && polled <= 0) watch(steady_now_ns());
  if (was_broken && polled <= 0 && !done.empty() && !may_be_confirmed()) state_ = State::kFailed;
  return state_ == State::kFailed ? failure_.status : Status::kOk;
}

Status VerbsChannel::arm() {
  if (!on_poller_) return Status::kUnsupported;
  if (state_ == State::kSetUp) return Status::kInvalid;
  if (state_ == State::kReady) watch(steady_now_ns());
  if (state_ > State::kBroken) return failure_.status;
  if (state_ == State::kBroken || !kept_.empty() || lanes_.has_sent()) return Status::kAgain;
  return lanes_.completions().arm() ? Status::kOk : Status::kAgain;
}

void VerbsChannel::disarm() {
  if (on_poller_ && lanes_.is_open()) lanes_.completions().disarm();
}

void VerbsChannel::watch(uint64_t now_ns) {
  if (!watch_.is_due(now_ns)) return;
  auto sound = watch_.look(lanes_, now_ns);
  if (!sound) fail_with(prefixed(where(), std::move(sound.error())), State::kBroken);
}

void VerbsChannel::take(const ibv_wc& completion, std::span<Done> done, size_t* count) {
  const WorkId id = WorkId::unpack(completion.wr_id);
  Lane& lane = lanes_[id.lane];
  if (completion.status != IBV_WC_SUCCESS) {
    if (id.kind == WorkId::Kind::kReceive) --lane.receives;
    if (id.kind == WorkId::Kind::kWorks) take_refusal(id, completion.status);
    if (state_ != State::kReady) return;
    fail_with(prefixed(where(), completion_error(rail_.nic(), completion, lanes_.undelivered())),
              State::kBroken);
    return;
  }
  watch_.completed();
  if (id.kind == WorkId::Kind::kWorks) return lanes_.complete(id);
  if (id.kind == WorkId::Kind::kKeepAlive) return watch_.keep_alive_completed();
  if (id.kind == WorkId::Kind::kHello) return;
  if (id.kind == WorkId::Kind::kReadBehind) {
    const int code = lanes_.take_read_behind(id);
    if (code == 0) return;
    auto error = system_error(code, "%s: ibv_post_send of a read failed", where().c_str());
    return fail_with(std::move(error), State::kBroken);
  }
  --lane.receives;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0) return take_close(lane);
  done[(*count)++] = take_arrival(completion);
  if (state_ == State::kReady) (void)lanes_.give_back_receives(lane);
}

// The place of the work in its ring is not used again, as the queue pair is broken. Works of a
// post() that failed are not told.
void VerbsChannel::take_refusal(const WorkId& id, ibv_wc_status status) {
  const bool by_peer = is_refusal(status);
  if (!by_peer && status != IBV_WC_LOC_PROT_ERR) return;
  if (!lanes_.is_posted(id)) return;
  const PostedWork work = lanes_.refuse(id);
  const bool is_read = work.opcode == Opcode::kRead;
  if (is_read || (by_peer && work.opcode == Opcode::kWrite)) {
    kept_.push_back(slime::refused(work.cookie));
  }
}

Done VerbsChannel::take_arrival(const ibv_wc& completion) {
  counters.arrivals.add();
  counters.bytes_received.add(completion.byte_len);
  return slime::arrived(__builtin_bswap32(completion.imm_data), completion.byte_len);
}

// The peer closes each of its lanes; works on the others may still be on their way. The message of
// the last one may be here before the NIC has the peer's confirmation of works that have arrived.
void VerbsChannel::take_close(Lane& lane) {
  lane.has_closed = true;
  if (state_ != State::kReady || !std::ranges::all_of(lanes_.all(), &Lane::has_closed)) return;
  fail_with(prefixed(where(), closed_by_peer(lanes_.undelivered())), State::kBroken);
  closed_until_ns_ = steady_now_ns() + times::kFenceDrain;
}

bool VerbsChannel::may_be_confirmed() const {
  return lanes_.undelivered() > 0 && steady_now_ns() < closed_until_ns_;
}

void VerbsChannel::fence() {
  if (state_ == State::kFenced) return;
  for (Lane& lane : lanes_.all()) lane.pair.stop();
  drain();
  fail_with(fenced_off(where()), State::kFenced);
  disarm();
  lanes_.destroy();
}

// Each receive that is posted completes, with what came or as flushed.
void VerbsChannel::drain() {
  const uint64_t end_ns = steady_now_ns() + times::kFenceDrain;
  const auto is_left = [](const Lane& lane) { return lane.receives > 0; };
  bool late = false;  // it ends when a look after the deadline has found nothing
  const auto may_come = [&](int polled) { return polled > 0 || (polled == 0 && !late); };
  for (int polled = 1; std::ranges::any_of(lanes_.all(), is_left) && may_come(polled);) {
    late = steady_now_ns() >= end_ns;
    std::array<ibv_wc, kPolledAtOnce> completions;
    polled = lanes_.completions().poll(completions);
    for (int i = 0; i < polled; ++i) {
      const ibv_wc& completion = completions[static_cast<size_t>(i)];
      const WorkId id = WorkId::unpack(completion.wr_id);
      if (id.kind == WorkId::Kind::kWorks && completion.status != IBV_WC_SUCCESS) {
        take_refusal(id, completion.status);
      }
      if (id.kind != WorkId::Kind::kReceive) continue;
      --lanes_[id.lane].receives;
      if (completion.status != IBV_WC_SUCCESS || !(completion.wc_flags & IBV_WC_WITH_IMM)) continue;
      kept_.push_back(take_arrival(completion));
    }
  }
}

}  // namespace slime::verbs
