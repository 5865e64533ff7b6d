#include "collnet/comm/coll_comm.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "settings/times.h"

namespace slime {
namespace {

constexpr uint64_t kCheckNs = 20'000'000;
constexpr uint64_t kCalledNs = 5'000'000;  // no longer ago: NCCL's thread makes progress
constexpr uint64_t kServeNs = 200'000;

}  // namespace

// From the first sum on, packets arrive by on_datagram(), so that needs the object.
Result<std::unique_ptr<CollComm>> CollComm::connect(Devices& devices, int device,
                                                    Listener& listener,
                                                    std::span<const Handle> handles, uint32_t rank,
                                                    uint64_t advice, const CommOptions& options) {
  const std::string name = "CollNet on " + devices.device(device)->properties().name + ", rank " +
                           std::to_string(rank) + " of " + std::to_string(handles.size());
  Setup setup{
      .devices = devices,
      .device = device,
      .advice = advice,
      .options = options,
      .deadline = Deadline(devices.clock(), seconds_to_ns(devices.settings().connect_timeout))};
  setup.config->name = name;
  std::unique_ptr<CollComm> comm;
  auto done = set_up_members(setup, listener, handles, rank);
  if (done) {
    comm.reset(new CollComm(setup));
    comm->start_trial();
    done = comm->agree_on_trial(setup.deadline);
  }
  if (!done)
    return fail(Error{done.error().status, done.error().code, name + ": " + done.error().what});
  comm->connected_ = true;
  comm->config_->keeper->schedule(comm.get(), devices.clock().now_ns());
  return comm;
}

CollComm::CollComm(Setup& setup)
    : clock_(setup.devices.clock()),
      ring_(std::move(setup.ring)),
      config_(std::move(setup.config)),
      attachments_(std::move(setup.attachments)),
      fallback_(*ring_, *config_, attachments_, spread_),
      late_(config_->name) {
  held_.reserve(Worker::kMaxOperations);
  fallback_.spread_anew();
}

// The member that has the lease gives the job back here. So each member first ends a move that is
// under way, and then waits until all members are here. From then on no member needs the switch, or
// a result that only another member has.
CollComm::~CollComm() {
  if (connected_) config_->keeper->cancel(this);
  // The buffers of operations may be gone.
  held_.clear();
  for (const auto& attachment : attachments_) attachment->worker().abandon();
  serve_until([&](uint64_t now_ns) {
    if (!fallback_.idle() && !failed_) move(now_ns);
    return fallback_.idle() || failed_;
  });
  if (!failed_ && fallback_.idle()) wait_for_members();
  log_report(report());
}

template <typename Condition>
void CollComm::serve_until(Condition ended) {
  (void)step_until(clock_, Deadline(clock_, times::kOtherRanksAtEnd), [&](uint64_t now_ns) {
    if (ended(now_ns)) return true;
    config_->port->receive(*this, now_ns);
    config_->port->flush();
    return false;
  });
}

// The workers still answer the questions of peers.
void CollComm::wait_for_members() {
  std::vector<std::byte> done(ring_->size());
  if (!ring_->begin_gather(done, 1, Ring::Topic::kLeave)) return;
  Error error;
  serve_until([&](uint64_t) { return ring_->step(&error) != Status::kAgain; });
}

// All workers stop before the caller sees the failure, because it may then free the buffers.
void CollComm::give_up(Error error) {
  for (const auto& attachment : attachments_) attachment->worker().give_up(error);
  if (!std::exchange(failed_, true)) failure_ = std::move(error);
}

// Operations --------------------------------------------------------------------------------------

// An operation goes through `held_`. During a move it stays there until the move has ended, and is
// not among the operations that this rank has announced as started: those after the move may be cut
// otherwise (Spread).
Status CollComm::start(const Operation& operation, uint64_t* ticket) {
  const std::lock_guard lock(mutex_);
  const uint64_t now_ns = clock_.now_ns();
  if (failed_) return status();
  if (!Payload::supports(operation.type, operation.op)) return Status::kUnsupported;
  const auto room = [&](const auto& one) { return one->worker().room() > held_.size(); };
  if (!std::ranges::all_of(attachments_, room)) return Status::kAgain;
  *ticket = tickets_++;
  held_.push_back(operation);
  start_held(now_ns);
  config_->port->flush();
  return Status::kOk;
}

// Not in the middle of a move, which may change how operations are spread.
void CollComm::start_held(uint64_t now_ns) {
  if (!fallback_.idle()) return;
  for (const Operation& operation : held_) start_parts(operation, now_ns);
  held_.clear();
}

// Each attachment gets a part, perhaps an empty one, so that tickets are the same everywhere.
void CollComm::start_parts(const Operation& operation, uint64_t now_ns) {
  const uint64_t per_packet = attachments_[0]->worker().payload_of(operation).elements_per_packet();
  const uint64_t width = element_bytes(operation.type);
  const auto chunks = spread_.cut((operation.count + per_packet - 1) / per_packet);
  uint64_t first = 0;
  for (size_t i = 0; i < attachments_.size(); ++i) {
    Operation part = operation;
    part.count = std::min(chunks[i] * per_packet, operation.count - first);
    part.send = static_cast<const std::byte*>(operation.send) + first * width;
    part.receive = static_cast<std::byte*>(operation.receive) + first * width;
    uint64_t ticket = 0;
    // There is room: start() has seen to that.
    (void)attachments_[i]->worker().start(part, now_ns, &ticket);
    first += part.count;
  }
}

bool CollComm::done(uint64_t ticket) const {
  const auto is_done = [&](const auto& one) { return one->worker().done(ticket); };
  return ticket < tickets_ - held_.size() && std::ranges::all_of(attachments_, is_done);
}

// Every call moves packets of all operations, because NCCL tests the oldest only.
Status CollComm::test(uint64_t ticket, bool* is_done) {
  const std::lock_guard lock(mutex_);
  called_ns_ = clock_.now_ns();
  progress(called_ns_);
  *is_done = done(ticket);
  return *is_done ? Status::kOk : status();
}

// Each worker has been given a part of every operation, perhaps an empty one.
WorkerCounters CollComm::counters() const {
  WorkerCounters sum;
  for (const auto& attachment : attachments_) sum += attachment->worker().counters();
  sum.operations = attachments_.front()->worker().counters().operations;
  return sum;
}

WorkerReport CollComm::report() {
  const std::lock_guard lock(mutex_);
  WorkerReport report{.name = config_->name,
                      .worker = counters(),
                      .port = config_->port->counters(),
                      .switches = static_cast<uint32_t>(attachments_.size()),
                      .lost_switches = lost_switches(attachments_)};
  for (const auto& attachment : attachments_) {
    report.round_trip_ns = std::max(report.round_trip_ns, attachment->worker().round_trip_ns());
  }
  return report;
}

uint64_t CollComm::results() {
  const std::lock_guard lock(mutex_);
  return counters().results;
}

// Progress ----------------------------------------------------------------------------------------

// Packets in, time-outs, packets out: in this order, so that a result that lies in the socket is
// taken before a time-out asks for it again.
void CollComm::progress(uint64_t now_ns) {
  config_->port->receive(*this, now_ns);
  for (const auto& attachment : attachments_) attachment->poll(now_ns);
  config_->port->flush();
  if (!fallback_.idle()) move(now_ns);
  if (now_ns >= check_ns_) check_members(now_ns);
  for (const auto& attachment : attachments_) {
    Worker& worker = attachment->worker();
    const auto missing = worker.take_suspicion();
    if (missing && !missing->empty() && !failed_)
      late_.miss(*missing, config_->job.suspect_ns, now_ns);
    if (!failed_ && worker.status() != Status::kOk) give_up(worker.failure());
  }
}

void CollComm::move(uint64_t now_ns) {
  auto moved = fallback_.step(now_ns);
  if (!moved) return give_up(std::move(moved.error()));
  start_held(now_ns);
}

// To a switch a slow rank looks like a dead one; its neighbours in the ring see a broken link. This
// rank gives up when a neighbour has been gone for a second in which no result has come. While the
// members connect they all move at once, or not at all, because they use the ring to agree.
void CollComm::check_members(uint64_t now_ns) {
  check_ns_ = now_ns + kCheckNs;
  const uint64_t results = counters().results;
  const bool results_come = results != std::exchange(results_, results);
  late_.look(results_come || failed_, now_ns);
  const auto whole = ring_->check();
  // A job that has failed stays where it is.
  if (connected_ && !failed_ && fallback_.wanted(now_ns)) {
    auto begun = fallback_.begin();
    if (!begun) give_up(std::move(begun.error()));
  }
  if (whole || results_come) {
    member_lost_ns_ = 0;
    return;
  }
  if (member_lost_ns_ == 0) member_lost_ns_ = now_ns;
  if (now_ns - member_lost_ns_ >= times::kOtherRanksAtEnd) give_up(whole.error());
}

// The housekeeper's turn. NCCL's thread comes first: while it calls, or holds the mutex, this one
// does nothing.
uint64_t CollComm::run_due(uint64_t now_ns) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) now_ns = clock_.now_ns();  // NCCL's thread may have been here since
  if (!lock || now_ns - called_ns_ < kCalledNs) return now_ns + kCalledNs;
  progress(now_ns);
  // Where the ranks sum up for each other, one that is not called serves the others all the same.
  const auto serves = [](const auto& one) {
    return !one->on_switch() && one->worker().room() < Worker::kMaxOperations;
  };
  const bool all_lost = lost_switches(attachments_) == attachments_.size();
  return now_ns + (all_lost || std::ranges::any_of(attachments_, serves) ? kServeNs : kCheckNs);
}

// The one place where a datagram is decoded. It goes to the attachment whose job and token it
// names. A datagram that names no job goes to the first attachment, whose worker counts it.
void CollComm::on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                           uint64_t now_ns) {
  sap::Header header;
  if (sap::decode(datagram, &header) != sap::Fault::kNone) return;
  SwitchAttachment* found = attachments_.front().get();
  for (const auto& attachment : attachments_) {
    if (!attachment->job().route.names(header)) continue;
    found = attachment.get();
    if (header.token == attachment->job().route.token) break;
  }
  found->on_datagram(header, datagram, from, now_ns);
}

}  // namespace slime
