// How requests and the link of a peer are moved.
#include "peer/peer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace slime {
namespace {

constexpr int kRounds = 3;  // of the work of others, before the service gets it

}  // namespace

// The mark is left before: who holds the lock looks for it after it has given the lock back.
bool Peer::try_enter() {
  {
    const std::lock_guard lock(handing_);
    missed_ = true;
  }
  return lock_.try_lock();
}

// True: others have left something to do.
bool Peer::leave_lock() {
  lock_.unlock();
  const std::lock_guard lock(handing_);
  return missed_ || !handed_.empty();
}

bool Peer::has_handed() {
  const std::lock_guard lock(handing_);
  return !handed_.empty();
}

void Peer::hand(std::shared_ptr<PeerRequest> request) {
  const std::lock_guard lock(handing_);
  handed_.push_back(std::move(request));
}

bool Peer::submit(std::shared_ptr<PeerRequest> request) {
  hand(std::move(request));
  return try_move();
}

bool Peer::try_move(bool spins) {
  for (int round = 0; round < kRounds; ++round) {
    if (!try_enter()) return true;
    if (spins) disarm();
    move();
    const bool looked_after = spins || is_looked_after();
    if (!leave_lock()) return looked_after;
  }
  return false;
}

// Pollers name the link when there is something to do.
bool Peer::arm() {
  if (connection_ == nullptr) return false;
  return armed_ = connection_->link.arm();
}

void Peer::disarm() {
  if (armed_.exchange(false)) connection_->link.disarm();
}

bool Peer::has_open_work() const {
  if (connection_ == nullptr) return state() == State::kConnecting;
  const Link& link = connection_->link;
  return !connection_->mover.idle() || !connection_->directory.idle() || wants_link() ||
         link.has_work() || link.has_unproven_rail();
}

bool Peer::is_looked_after() {
  if (threads_suffice()) {
    disarm();
    return true;
  }
  if (connection_ == nullptr) return attended_ || !has_open_work();
  return arm() && (attended_ || !has_open_work());
}

Peer::Next Peer::serve(uint64_t now_ns) {
  const bool may_skip = state() == State::kUp && !armed_ && !has_handed();
  if (may_skip && polling_.service_may_skip(now_ns)) return Next::kPolledElsewhere;
  if (!try_enter()) {  // the holder moves it, and arms it unless threads were relied on
    if (state() == State::kConnecting) return Next::kSetUp;
    const bool sufficed = threads_suffice();
    const bool relied_on = polling_.end_window(now_ns, false);
    return sufficed || relied_on ? Next::kPolledElsewhere : Next::kNowAndThen;
  }
  const uint64_t before = traffic();
  move();
  const Next next = next_call(now_ns, traffic() != before);
  attended_ = next != Next::kWhenNamed;
  return leave_lock() ? Next::kNow : next;
}

Peer::Next Peer::next_call(uint64_t now_ns, bool found) {
  if (state() == State::kConnecting || (leaves() && connection_ != nullptr)) return Next::kSetUp;
  if (connection_ == nullptr) {
    polling_.stop_relying();
    return Next::kWhenNamed;
  }
  const uint64_t count = traffic();
  const bool moved = std::exchange(traffic_, count) != count;
  const bool relied_on = polling_.end_window(now_ns, found);
  if (threads_suffice()) {
    disarm();
    return Next::kPolledElsewhere;
  }
  if (moved) {
    now_ns = world_.devices.clock().now_ns();  // many bytes take their time
    hot_until_ns_ = now_ns + kSpinNs;
    attended_until_ns_ = now_ns + kAttendedNs;
  }
  if (now_ns < hot_until_ns_) return Next::kNow;
  const bool rests = !has_open_work() && now_ns >= attended_until_ns_;
  if (!has_pollers()) return rests ? Next::kNowAndThen : Next::kSoon;
  if (!arm()) return Next::kNow;
  if (relied_on) return Next::kPolledElsewhere;  // armed meanwhile
  return rests ? Next::kWhenNamed : Next::kNowAndThen;
}

// Without one for each rail nobody names the link.
bool Peer::has_pollers() const {
  return world_.pollers[thread()].size() == world_.devices.device(world_.device)->rails().size();
}

void Peer::take_handed() {
  {
    const std::lock_guard lock(handing_);
    taken_.swap(handed_);
    missed_ = false;
  }
  for (auto& request : taken_) {
    if (leaves()) {
      request->give_up(gone_);
      messages_.after(request, world_.devices.clock().now_ns());
    } else if (connection_ != nullptr) {
      begin(std::move(request));
    } else {
      waiting_.push_back(std::move(request));
    }
  }
  taken_.clear();
}

void Peer::begin(std::shared_ptr<PeerRequest> request) {
  Requests before;
  if (request->strong) before = open_requests();
  if (!before.empty()) {
    barriers_.add(std::move(request), std::move(before));
  } else if (request->listing != nullptr) {
    connection_->directory.ask(std::move(request));
  } else if (request->all_begun()) {
    messages_.after(request, world_.devices.clock().now_ns());
  } else {
    connection_->mover.add(std::move(request));
  }
}

// threads_suffice() goes by what is under way after each move.
void Peer::move() {
  move_all();
  light_ = connection_ == nullptr || connection_->mover.is_light();
}

void Peer::move_all() {
  SLIME_CHECK(lock_.held());
  take_handed();
  if (crossed_ != nullptr && connection_ != nullptr) drop_crossed();
  if (connection_ != nullptr) return move_link();
  if (!wants_link() && connector_ == nullptr && state() != State::kConnecting) return;
  const uint64_t now_ns = world_.devices.clock().now_ns();
  expire_waiting(now_ns);
  release_barriers(now_ns);
  messages_.expire(now_ns);
  const bool waited = state() == State::kConnecting && connector_ == nullptr;
  if (waited && now_ns >= redial_ns_) set_state(State::kNew);
  if (state() == State::kNew && wants_link()) dial();
  if (connector_ != nullptr) step_connector();
  if (state() == State::kGone && wants_link()) end(gone_);
}

Requests Peer::open_requests() const {
  Requests all;
  connection_->mover.add_open(&all);
  messages_.add_open(&all);
  barriers_.add_open(&all);
  return all;
}

void Peer::release_barriers(uint64_t now_ns) {
  for (const auto& request : barriers_.take(now_ns)) {
    if (now_ns >= request->due_ns()) {
      request->give_up(request->overdue(", and the requests before it have not all ended"));
    }
    messages_.after(request, now_ns);
  }
}

void Peer::expire_waiting(uint64_t now_ns) {
  std::erase_if(waiting_, [this, now_ns](const std::shared_ptr<PeerRequest>& request) {
    if (now_ns < request->due_ns()) return false;
    request->give_up(request->overdue(", and the peer is not connected yet"));
    messages_.after(request, now_ns);
    return true;
  });
}

void Peer::move_link() {
  Connection& to = *connection_;
  Status status = to.link.progress();
  if (status == Status::kOk) status = take_records();
  if (status == Status::kOk) (void)take_messages();
  if (to.link.status() != Status::kOk) return end_with_link();
  const uint64_t now_ns = world_.devices.clock().now_ns();
  if (leaves() && is_farewell_over(now_ns)) return end(gone_);
  (void)go_on_with_returned();
  if (!to.mover.in_time(now_ns)) return give_link_up();
  if (to.link.status() != Status::kOk) return end_with_link();
  to.mover.move(now_ns);
  if (messages_.reads_notice()) (void)take_messages();  // it may be here now
  release_barriers(now_ns);
  to.directory.move(now_ns);
  messages_.expire(now_ns);
  messages_.move(to.rings, now_ns);
  while (go_on_with_returned()) {  // each round needs one that was refused
    to.mover.move(now_ns);
    messages_.move(to.rings, now_ns);
  }
  to.records.move();
  to.rings.move();
  to.link.post_more();
}

Status Peer::take_records() {
  Connection& to = *connection_;
  Status status = Status::kOk;
  while (status == Status::kOk && !to.records.congested()) {
    const auto record = to.records.next();
    if (!record || !*record) break;
    status = take_record(**record);
  }
  return status;
}

Status Peer::take_record(const Record& record) {
  Connection& to = *connection_;
  switch (static_cast<RecordKind>(record.kind)) {
    case RecordKind::kWantKeys:
    case RecordKind::kKeys:
      return to.keys.on_record(record);
    case RecordKind::kFarewell:
      return on_farewell(record.payload);
    case RecordKind::kAddress:
      return on_address(record.payload);
    case RecordKind::kName:
      return on_name(record.payload);
    case RecordKind::kTaken:
      return on_taken(record.payload);
    case RecordKind::kWantRegions:
    case RecordKind::kRegion:
      return to.directory.on_record(record);
  }
  return to.link.context().fail_protocol("a record of a kind that engines do not know");
}

Status Peer::take_messages() {
  if (leaves()) return Status::kOk;  // there is nobody for them
  return messages_.receive(connection_->rings, handle_,
                           [this](const std::shared_ptr<PeerRequest>& letter) { begin(letter); });
}

Status Peer::on_arrived(size_t, uint32_t immediate, uint64_t) {
  return connection_->rings.on_arrived(immediate);
}

// Pieces are not written again where the peer has the message that follows them.
Status Peer::on_both_fenced(const RailLife& life) {
  Connection& to = *connection_;
  const auto peer = to.rings.peer_report(life);
  if (!peer) return to.link.status();
  to.mover.note_arrived(
      [&](const PeerRequest& of) { return messages_.has_got(of, to.rings, *peer); });
  to.link.rails().hand_back_works(life.rail);
  messages_.take_lost_back(to.rings, *peer);
  to.rings.count_again();
  return Status::kOk;
}

// Requests whose message did not reach the peer behind their pieces: those that were lost begin
// again, others tell the peer now. One whose pieces still move tells it at their end. False: there
// were none.
bool Peer::go_on_with_returned() {
  auto returned = messages_.take_returned();
  for (auto& request : returned) {
    if (!request->moved() || request->tells() || request->done()) continue;
    if (leaves()) request->give_up(gone_);
    if (request->is_lost() && !request->given_up()) {
      request->restart();
      waiting_.push_back(std::move(request));
    } else {
      messages_.after(request, world_.devices.clock().now_ns());
    }
  }
  if (connection_ != nullptr) {
    for (auto& request : std::exchange(waiting_, {})) begin(std::move(request));
  }
  return !returned.empty();
}

}  // namespace slime
