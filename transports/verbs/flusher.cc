#include "transports/verbs/flusher.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "transports/verbs/rail.h"

namespace slime::verbs {
namespace {

constexpr uint64_t kWatchPauseNs = 50'000'000;  // also between two queue pairs

}  // namespace

VerbsFlusher::VerbsFlusher(VerbsRail& rail)
    : ReadFlusher(rail.caps(), rail.regions()), rail_(rail) {}

Result<std::unique_ptr<Flusher>> VerbsFlusher::open(VerbsRail& rail) {
  std::unique_ptr<VerbsFlusher> flusher(new VerbsFlusher(rail));
  auto opened = rail.nic().check_health();
  if (opened) opened = flusher->create_queue();
  if (opened) opened = flusher->connect(rail.last_port());  // also while it is down
  if (opened) return flusher;
  return fail(flusher->prefixed(std::move(opened.error())));
}

Result<void> VerbsFlusher::create_queue() {
  const Nic& nic = rail_.nic();
  const uint32_t room = std::min(nic.reads(), nic.reads_of_peer());
  static_assert(kMostReads <= FlushReads::kMost);
  room_ = room;
  completions_ = nic.create_completion_queue(room);
  if (completions_ == nullptr) {
    return fail(system_error(errno, "ibv_create_cq for %u completions failed", room));
  }
  auto target = Registered<uint64_t>::create(nic, nic.flush_pd());
  if (!target) return fail(std::move(target.error()));
  target_ = std::move(*target);
  return {};
}

// Makes a queue pair that is connected to itself. The one before it ends with what is posted on it.
Result<void> VerbsFlusher::connect(std::shared_ptr<const Port> port) {
  auto first_psn = random_psn();
  if (!first_psn) return fail(std::move(first_psn.error()));
  auto pair = QueuePair::create(port, rail_.nic().flush_pd(), completions_.get(),
                                {static_cast<uint32_t>(room_), 1, 0});
  if (!pair) return fail(std::move(pair.error()));
  Path path = Path::from(*port, rail_.settings(), kNoTrafficClass);
  path.gid = port->gid.gid;
  path.lid = port->lid;
  path.reads = path.reads_of_peer = static_cast<uint8_t>(room_);
  const auto pkey_index = static_cast<uint16_t>(rail_.settings().pkey_index);
  auto ready = pair->initialize(pkey_index, IBV_ACCESS_REMOTE_READ);
  if (ready) ready = pair->receive_from(path, {pair->number(), *first_psn});
  if (ready) ready = pair->send_to(path, *first_psn);
  if (!ready) return ready;
  pair_ = std::move(*pair);
  port_ = std::move(port);
  changes_ = port_->changes;
  return {};
}

// A queue pair that a read of memory without a registration has broken is replaced at once.
void VerbsFlusher::begun(bool first) {
  if (first) watch_due_ns_ = steady_now_ns() + (state_ == State::kReady ? kWatchPauseNs : 0);
  if (state_ == State::kReady) post_waiting();
}

bool VerbsFlusher::post(uint64_t number, const FlushReads::Read& read) {
  const auto key = rail_.flush_key(read.keys.local);
  if (!key) {
    fail_with(prefixed(key.error()));
    return false;
  }
  ibv_sge target = target_->piece(target_->value);
  target.length = 1;
  ibv_send_wr request = {};
  request.wr_id = number;
  request.opcode = IBV_WR_RDMA_READ;
  request.sg_list = &target;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(read.address);
  request.wr.rdma.rkey = *key;
  const int code = pair_.post(&request);
  if (code == 0) return true;
  fail_with(prefixed(system_error(code, "ibv_post_send of a read failed")));
  return false;
}

void VerbsFlusher::progress() {
  if (state_ == State::kReady) take_completions();
  if (failed() || reads_.open() == 0) return;
  const uint64_t now_ns = steady_now_ns();
  if (now_ns < watch_due_ns_) return;
  watch_due_ns_ = now_ns + kWatchPauseNs;
  watch();
}

// In the order of the reads. What follows a failure was flushed, and is read again.
void VerbsFlusher::take_completions() {
  std::array<ibv_wc, FlushReads::kMost> done;
  const int count = ibv_poll_cq(completions_.get(), FlushReads::kMost, done.data());
  if (count < 0) {
    fail_with(prefixed(system_error(errno, "ibv_poll_cq failed")));
    return;
  }
  for (const ibv_wc& completion : std::span(done).first(static_cast<size_t>(count))) {
    if (completion.status != IBV_WC_SUCCESS) {
      take_failure(completion);
      break;
    }
    reads_.complete(completion.wr_id);
    tried_changes_.reset();
    warned_ = false;
  }
}

void VerbsFlusher::take_failure(const ibv_wc& completion) {
  state_ = State::kBroken;
  if (!reads_.wait_again(completion.wr_id)) return;
  trouble_ = prefixed(
      make_error(Status::kSystem, completion.status,
                 "a read of the rail's own memory failed: %s (status %d, vendor 0x%x); see `rdma "
                 "link`, and dmesg for errors of this NIC or of the GPU",
                 rail_.nic().verbs().wc_status_str(completion.status), completion.status,
                 completion.vendor_err));
}

// Reads are under way. A port that has lost the address of the queue pair lets them wait in the NIC
// for as long as it tries again.
void VerbsFlusher::watch() {
  if (auto healthy = rail_.nic().check_health(); !healthy) {
    fail_with(prefixed(std::move(healthy.error())));
    return;
  }
  if (state_ == State::kReady) {
    const std::string change = find_new_change(*port_, &changes_);
    if (change.empty()) return;
    SLIME_INFO("rail %s, for flushes: %s", rail_.caps().name.c_str(), change.c_str());
    state_ = State::kBroken;
  }
  repair();
}

// Connects another queue pair, with the port's present address. That may help while the port is
// down too, as some NICs read from themselves all the same; so reads wait until the caller gives
// up. Where the port is up, and has not changed since the last new queue pair, another one would
// fail as well: then the flusher fails.
void VerbsFlusher::repair() {
  const auto port = rail_.port();
  const std::optional<uint32_t> changes =
      port ? std::optional((*port)->changes) : std::optional<uint32_t>();
  std::optional<Error> trouble = std::exchange(trouble_, std::nullopt);
  if (trouble && port && tried_changes_ == changes) {
    trouble->what += "; another queue pair did not help";
    fail_with(std::move(*trouble));
    return;
  }
  if (trouble) {
    SLIME_INFO("%s; another queue pair is tried", trouble->what.c_str());
    tried_changes_ = changes;
  }
  if (!port && !std::exchange(warned_, true)) {
    SLIME_WARN("rail %s: a flush waits for its port, up to NCCL_SLIME_PEER_TIMEOUT: %s",
               rail_.caps().name.c_str(), port.error().what.c_str());
  }
  auto connected = connect(port ? *port : rail_.last_port());
  if (!connected) {
    trouble_ = prefixed(std::move(connected.error()));
    return;
  }
  std::array<ibv_wc, FlushReads::kMost> before;  // of the queue pair before
  while (ibv_poll_cq(completions_.get(), FlushReads::kMost, before.data()) == FlushReads::kMost) {
  }
  state_ = State::kReady;
  reads_.all_wait_again();
  post_waiting();
}

}  // namespace slime::verbs
