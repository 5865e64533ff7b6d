// How a peer gets its link, and how it loses it.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "peer/peer.h"

namespace slime {
namespace {

// For the link that the peer dials; then this end dials.
constexpr uint64_t kAwaitNs = 2'000'000'000;

}  // namespace

// Nobody else has it any more.
Peer::~Peer() {
  lock_.lock();
  take_handed();
  end(make_error(Status::kRemote, 0, "the engine was closed"));
  lock_.unlock();
}

Peer::Report Peer::report() {
  const Hold hold(*this);
  Report report{state(), gone_.what, 0, 0, waiting_.size(), {}, name_, {}};
  if (address_) report.address = pack({id_, *address_});
  if (connection_ != nullptr) {
    const LinkRails& rails = connection_->link.rails();
    report.rails = static_cast<uint32_t>(rails.count());
    report.round_trip_ns = connection_->mover.round_trip_ns();
    report.requests += open_requests().size();
    report.rails_up = static_cast<uint32_t>(rails.up_count());
    for (size_t i = 0; i < rails.count(); ++i) {
      const RailCaps& caps = rails[i].rail->caps();
      report.rail_text += std::to_string(i) + ": " + caps.name + " (" + caps.transport + "), " +
                          (rails[i].up() ? "up\n" : "down\n");
      const RailTotals totals = rails[i].totals();
      report.works += totals.works;
      report.doorbells += totals.doorbells - totals.futile_posts;
    }
  }
  return report;
}

bool Peer::learn_address(const LinkAddress& address) {
  const Hold hold(*this);
  if (leaves()) return false;
  address_ = address;
  known_ = true;
  if (proof_ && !same_nonce(*proof_, nonce_of(address))) {
    take_handed();
    end(make_error(Status::kRemote, 0, "another engine had connected in this peer's name"));
    messages_.forget_peer(world_.devices.clock().now_ns());
    world_.messages.drop_of(handle_);
    proof_.reset();
  }
  if (state() == State::kGone) set_state(State::kNew);
  await_no_more();  // the engine that is dialing may have another address
  return true;
}

// The first to come is believed, until its address is known. Where both ends dial at the same time
// one link is enough: that of the engine with the lower id.
Peer::Admission Peer::admit(const Nonce& proof) {
  const Hold hold(*this);
  const std::optional<Nonce> expected = address_ ? std::optional(nonce_of(*address_)) : proof_;
  if (expected && !same_nonce(*expected, proof)) return Admission::kNotTheOne;
  if (connector_ != nullptr && world_.self < id_) return Admission::kCrossing;
  if (state() == State::kNew) await_dialed();
  return Admission::kCome;
}

bool Peer::has_link(const LinkId& link) {
  const Hold hold(*this);
  return connection_ != nullptr && !leaves() && connection_->id == link &&
         connection_->link.status() == Status::kOk;
}

void Peer::resume(const LinkId& link, std::unique_ptr<LifelineStream> stream) {
  const Hold hold(*this);
  if (connection_ == nullptr || connection_->id != link) return;
  connection_->link.take_lifeline(std::move(stream));
  world_.attend(shared_from_this());
}

void Peer::connect() {
  const Hold hold(*this);
  if (leaves()) return;
  if (state() == State::kGone && address_) set_state(State::kNew);
  dial();
}

void Peer::dial() {
  if (state() != State::kNew) return;
  if (!address_) {
    return end(make_error(Status::kInvalid, 0,
                          "the address of this peer is not known: it connected to this engine and "
                          "has gone; add it by its address"));
  }
  auto connector =
      LinkConnector::open(world_.devices, world_.device, *address_, owner_, kNoTrafficClass);
  if (!connector) return end(std::move(connector.error()));
  connector_ = std::move(*connector);
  set_state(State::kConnecting);
}

// The peer dials. If nothing comes of that, this end does.
void Peer::await_dialed() {
  connector_.reset();
  redial_ns_ = world_.devices.clock().now_ns() + kAwaitNs;
  set_state(State::kConnecting);
}

void Peer::await_no_more() {
  if (state() == State::kConnecting && connector_ == nullptr) set_state(State::kNew);
}

void Peer::attach(std::unique_ptr<LinkParts> parts) {
  const Hold hold(*this);
  const EngineWords words = EngineWords::unpack(parts->words);
  // This peer was removed after that one was let in, or another peer of that engine has come since.
  if (leaves() || words.to_era != era_ || words.from_era < messages_.era()) return;
  // The address may have become known after the peer was let in.
  if (address_ && !same_nonce(words.proof, nonce_of(*address_))) return await_no_more();
  proof_ = words.proof;
  if (connector_ != nullptr && world_.self < id_) {
    crossed_ = std::move(parts);
    return;
  }
  set_up(std::move(parts), words.from_era);
}

void Peer::set_up(std::unique_ptr<LinkParts> parts, uint32_t era_there) {
  SLIME_CHECK(lock_.held());
  connector_.reset();
  drop_connection();
  // From now on the peer writes over this link alone.
  for (const auto& peer : std::exchange(before_, {})) peer->end_leaving();
  peer_left_ = false;
  gone_ = {Status::kOk, 0, {}};
  messages_.on_new_link(++links_, era_there, world_.devices.clock().now_ns());
  connection_ = std::make_unique<Connection>(world_, std::move(*parts), messages_, links_, id_);
  connection_->link.serve(*this);
  introduce();
  world_.name(connection_->link.context().tag, this);
  for (auto& request : std::exchange(waiting_, {})) begin(std::move(request));
  set_state(State::kUp);
}

// When the link has gone nothing touches the memory of its requests. Those that may still end well
// begin again on the next link: their pieces may be moved twice.
void Peer::drop_connection() {
  if (connection_ == nullptr) return;
  const uint64_t now_ns = world_.devices.clock().now_ns();
  connection_->mover.end_those_done(now_ns);
  messages_.end_taken(connection_->rings, now_ns);
  auto requests = connection_->mover.take_all();
  std::ranges::move(connection_->directory.take_all(), std::back_inserter(requests));
  world_.name(connection_->link.context().tag, nullptr);
  connection_.reset();
  armed_ = false;
  for (auto& request : requests) {
    if (request->has_followed()) {
      messages_.after(request, now_ns);
    } else if (request->given_up() || leaves()) {
      request->give_up(gone_);
      messages_.after(request, now_ns);
    } else if (request->tells()) {
      request->await_answer();
      request->set_moved();
    } else {
      request->restart();
      waiting_.push_back(std::move(request));
    }
  }
  (void)go_on_with_returned();
}

void Peer::step_connector() {
  auto parts = connector_->step();
  if (!parts && parts.error().what.find(kCrossing) != std::string::npos) {
    return await_dialed();
  }
  if (parts && *parts == nullptr) return;
  const uint32_t crossed_era =
      crossed_ != nullptr ? EngineWords::unpack(crossed_->words).from_era : 0;
  const uint32_t era_there = parts ? EngineWords::unpack((*parts)->words).to_era : 0;
  // The peer has removed this engine since, and dialed it again.
  if (crossed_era > era_there) return set_up(std::move(crossed_), crossed_era);
  if (!parts) return end(std::move(parts.error()));
  crossed_until_ns_ = world_.devices.clock().now_ns() + kAwaitNs;
  set_up(std::move(*parts), era_there);
}

// The peer has the other link by now: it does not take the end of this one for the end of all.
void Peer::drop_crossed() {
  if (world_.devices.clock().now_ns() >= crossed_until_ns_) crossed_.reset();
}

// The peer does not end a request that is overdue. The others are moved over a new link.
void Peer::give_link_up() {
  SLIME_INFO("peer %s: a request that is overdue or cancelled does not end; the link is given up",
             connection_->link.context().peer.c_str());
  if (leaves()) return end(gone_);
  drop_connection();
  set_state(State::kNew);
  if (wants_link()) dial();
}

void Peer::end_waiting(const Error& why) {
  const uint64_t now_ns = world_.devices.clock().now_ns();
  for (const auto& request : std::exchange(waiting_, {})) {
    request->give_up(why);
    messages_.after(request, now_ns);
  }
  for (const auto& request : barriers_.take(UINT64_MAX)) {
    request->give_up(why);
    request->end(now_ns);
  }
  messages_.end(handle_, why, now_ns);
}

// One that leaves has its reason already.
void Peer::end(Error why) {
  SLIME_CHECK(lock_.held());
  connector_.reset();
  crossed_.reset();
  drop_connection();
  if (!leaves()) gone_ = std::move(why);
  set_state(State::kGone);
  end_waiting(gone_);
  if (leaves()) has_left_.store(true, std::memory_order_release);
}

}  // namespace slime
