#include "transports/verbs/flusher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transports/verbs/rail.h"

namespace slime::verbs {
namespace {

constexpr int kMostReads = 16;

}  // namespace

Result<std::unique_ptr<Flusher>> VerbsFlusher::open(VerbsRail& rail) {
  std::unique_ptr<VerbsFlusher> flusher(new VerbsFlusher(rail));
  const auto port = rail.last_port();  // also while it is down
  auto opened = rail.nic().check_health();
  if (opened) opened = flusher->create_queues(port);
  if (opened) opened = flusher->connect_to_itself(*port);
  if (opened) return flusher;
  opened.error().what = "rail " + rail.caps().name + ", for iflush: " + opened.error().what;
  return fail(std::move(opened.error()));
}

// The queue pair first: the completion queue must outlive it.
VerbsFlusher::~VerbsFlusher() {
  const Symbols& verbs = rail_.nic().verbs();
  pair_ = QueuePair();
  if (completions_ != nullptr) (void)verbs.destroy_cq(completions_);
  if (landing_memory_ != nullptr) (void)verbs.dereg_mr(landing_memory_);
}

Result<void> VerbsFlusher::create_queues(const std::shared_ptr<const Port>& port) {
  const Nic& nic = rail_.nic();
  const int most = std::min(nic.attributes().max_qp_rd_atom, nic.attributes().max_qp_init_rd_atom);
  room_ = static_cast<uint32_t>(std::clamp(most, 1, kMostReads));
  completions_ = nic.verbs().create_cq(nic.context(), static_cast<int>(room_), nullptr, nullptr, 0);
  if (completions_ == nullptr) {
    return fail(system_error(errno, "ibv_create_cq for %u completions failed", room_));
  }
  landing_ = std::make_unique<Landing>();
  landing_memory_ =
      nic.verbs().reg_mr(nic.pd(), landing_.get(), sizeof *landing_, IBV_ACCESS_LOCAL_WRITE);
  if (landing_memory_ == nullptr) {
    return fail(system_error(errno, "ibv_reg_mr of 8 bytes failed; see `ulimit -l`"));
  }
  auto pair = QueuePair::create(port, completions_, {room_, 1, 0});
  if (!pair) return fail(std::move(pair.error()));
  pair_ = std::move(*pair);
  return {};
}

Result<void> VerbsFlusher::connect_to_itself(const Port& port) {
  auto first_psn = random_psn();
  if (!first_psn) return fail(std::move(first_psn.error()));
  Path path = Path::from(port, rail_.settings(), kNoTrafficClass);
  path.gid = port.gid.gid;
  path.lid = port.lid;
  path.reads = static_cast<uint8_t>(room_);
  const auto pkey_index = static_cast<uint16_t>(rail_.settings().pkey_index);
  auto ready = pair_.initialize(pkey_index, IBV_ACCESS_REMOTE_READ);
  if (ready) ready = pair_.receive_from(path, {pair_.number(), *first_psn});
  if (ready) ready = pair_.send_to(path, *first_psn);
  return ready;
}

Status VerbsFlusher::begin(const std::byte* address, uint64_t /*offset*/, const MemoryKeys& keys) {
  if (failed_) return failure_.status;
  if (begun_ - completed_ == room_) return Status::kAgain;
  ibv_sge landing = {reinterpret_cast<uint64_t>(landing_.get()), 1, landing_memory_->lkey};
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_READ;
  request.sg_list = &landing;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(address);
  request.wr.rdma.rkey = static_cast<uint32_t>(keys.remote);
  const int code = pair_.post(&request);
  if (code != 0) {
    return fail_with(system_error(code, "rail %s: ibv_post_send of a read for iflush failed",
                                  rail_.caps().name.c_str()));
  }
  ++begun_;
  return Status::kOk;
}

Status VerbsFlusher::poll(uint64_t* completed) {
  *completed = completed_;
  if (failed_) return failure_.status;
  std::array<ibv_wc, kMostReads> done;
  const int count = ibv_poll_cq(completions_, kMostReads, done.data());
  if (count < 0) {
    return fail_with(system_error(errno, "rail %s: ibv_poll_cq failed", rail_.caps().name.c_str()));
  }
  for (const ibv_wc& read : std::span(done).first(static_cast<size_t>(count))) {
    if (read.status != IBV_WC_SUCCESS) {
      return fail_with(make_error(
          Status::kSystem, read.status,
          "rail %s: a read of its own memory for iflush failed: %s (status %d, vendor 0x%x); the "
          "memory was deregistered, or the port is down (`rdma link`)",
          rail_.caps().name.c_str(), rail_.nic().verbs().wc_status_str(read.status), read.status,
          read.vendor_err));
    }
    ++completed_;
  }
  *completed = completed_;
  return Status::kOk;
}

Status VerbsFlusher::fail_with(Error error) {
  failed_ = true;
  failure_ = std::move(error);
  return failure_.status;
}

}  // namespace slime::verbs
