// How a peer gets its link, and how it loses it.
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "peer/peer.h"

namespace slime {

// A thread that waits for the lock.
class Peer::Hold {
 public:
  explicit Hold(Peer& peer) : peer_(peer) { peer_.lock_.lock(); }
  ~Hold() {
    if (peer_.leave_lock()) peer_.world_.attend(peer_.shared_from_this());
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Peer& peer_;
};

// Nobody else has it any more.
Peer::~Peer() {
  lock_.lock();
  take_handed();
  end(make_error(Status::kRemote, 0, "the engine was closed"));
  lock_.unlock();
}

Peer::Report Peer::report() {
  const Hold hold(*this);
  Report report{state(), gone_.what, 0, 0};
  if (connection_ != nullptr) {
    const LinkRails& rails = connection_->link.rails();
    report.rails = static_cast<uint32_t>(rails.count());
    report.rails_up = static_cast<uint32_t>(rails.up_count());
  }
  return report;
}

void Peer::learn_address(const LinkAddress& address) {
  const Hold hold(*this);
  address_ = address;
  if (proof_ && !same_nonce(*proof_, nonce_of(address))) {
    end(make_error(Status::kRemote, 0, "another engine had connected in this peer's name"));
    proof_.reset();
  }
  if (state() == State::kGone) set_state(State::kNew);
  await_no_more();  // whoever dials may not be the one with this address
}

std::optional<Nonce> Peer::expected_proof() {
  const Hold hold(*this);
  return address_ ? std::optional(nonce_of(*address_)) : proof_;
}

bool Peer::has_link(const LinkId& link) {
  const Hold hold(*this);
  return connection_ != nullptr && connection_->id == link &&
         connection_->link.status() == Status::kOk;
}

void Peer::resume(const LinkId& link, std::unique_ptr<LifelineStream> stream) {
  const Hold hold(*this);
  if (connection_ == nullptr || connection_->id != link) return;
  connection_->link.take_lifeline(std::move(stream));
}

void Peer::leave(Error why) {
  const Hold hold(*this);
  take_handed();
  end(std::move(why));
}

void Peer::connect() {
  const Hold hold(*this);
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

void Peer::await_link() {
  const Hold hold(*this);
  if (state() != State::kNew) return;
  await_dialed();
  set_state(State::kConnecting);
}

// The peer dials. If nothing comes of that, this end does.
void Peer::await_dialed() {
  connector_.reset();
  const uint64_t limit_ns = seconds_to_ns(world_.devices.settings().connect_timeout);
  redial_ns_ = world_.devices.clock().now_ns() + limit_ns;
}

void Peer::await_no_more() {
  if (state() == State::kConnecting && connector_ == nullptr) set_state(State::kNew);
}

void Peer::attach(std::unique_ptr<LinkParts> parts) {
  const Hold hold(*this);
  // The address may have become known after the peer was let in.
  const Nonce proof = EngineWords::unpack(parts->words).proof;
  if (address_ && !same_nonce(proof, nonce_of(*address_))) return await_no_more();
  proof_ = proof;
  set_up(std::move(parts));
}

void Peer::set_up(std::unique_ptr<LinkParts> parts) {
  SLIME_CHECK(lock_.held());
  connector_.reset();
  drop_connection();
  gone_ = {Status::kOk, 0, {}};
  connection_ = std::make_unique<Connection>(world_, std::move(*parts));
  connection_->link.serve(*this);
  world_.name(connection_->link.context().tag, this);
  for (auto& request : waiting_) connection_->mover.add(std::move(request));
  waiting_.clear();
  set_state(State::kUp);
}

// When the link has gone nothing touches the memory of its requests. Those that may still end well
// begin again on the next link: their pieces may be moved twice.
void Peer::drop_connection() {
  if (connection_ == nullptr) return;
  const uint64_t now_ns = world_.devices.clock().now_ns();
  connection_->mover.end_those_done(now_ns);
  auto requests = connection_->mover.take_all();
  world_.name(connection_->link.context().tag, nullptr);
  connection_.reset();
  armed_ = false;
  for (auto& request : requests) {
    if (request->given_up()) {
      request->end(now_ns);
    } else {
      request->restart();
      waiting_.push_back(std::move(request));
    }
  }
}

void Peer::step_connector() {
  auto parts = connector_->step();
  if (!parts && parts.error().what.find(kCrossing) != std::string::npos) {
    return await_dialed();
  }
  if (!parts) return end(std::move(parts.error()));
  if (*parts != nullptr) set_up(std::move(*parts));
}

// The peer does not end a request that is overdue. The others are moved over a new link.
void Peer::give_link_up() {
  SLIME_INFO("peer %s: a request does not end %.1f s after its deadline; the link is given up",
             connection_->link.context().peer.c_str(), Mover::kGraceNs * 1e-9);
  drop_connection();
  set_state(State::kNew);
  if (!waiting_.empty()) dial();
}

void Peer::end(Error why) {
  SLIME_CHECK(lock_.held());
  connector_.reset();
  drop_connection();
  const uint64_t now_ns = world_.devices.clock().now_ns();
  for (const auto& request : waiting_) {
    request->give_up(why);
    request->end(now_ns);
  }
  waiting_.clear();
  gone_ = std::move(why);
  set_state(State::kGone);
}

}  // namespace slime
