// How a peer is left, and how its end of the link says so.
//
//   leave(), say_farewell()   -->   what has become of messages, kFarewell   -->   on_farewell()
//   end(), has_left()         <--   the rails close                          <--   end()
#include <utility>

#include "peer/peer.h"

namespace slime {
namespace {

Error peer_has_left() {
  return make_error(Status::kRemote, 0,
                    "its engine was closed, or its program has removed this one");
}

}  // namespace

// Requests that wait end now, and those that move with their last transfers.
void Peer::leave(Error why) {
  const Hold hold(*this);
  if (leaves()) return;
  move();  // takes what has come
  leaving_since_ns_ = world_.devices.clock().now_ns();
  address_.reset();
  connector_.reset();
  crossed_.reset();
  before_.clear();  // the next peer gets those that have not left from the engine
  gone_ = std::move(why);
  if (connection_ == nullptr) return end(gone_);
  set_state(State::kGone);
  connection_->mover.give_all_up(gone_);
  connection_->directory.end_all(gone_, leaving_since_ns_);
  end_waiting(gone_);
  move_link();
}

Error Peer::removed_here() {
  return make_error(Status::kRemote, 0, "this program has removed the peer");
}

// The thread that removes it may not have come to leave() yet.
void Peer::end_leaving() {
  const Hold hold(*this);
  if (!leaves()) {
    leaving_since_ns_ = world_.devices.clock().now_ns();
    gone_ = removed_here();
    take_handed();
  }
  if (!has_left()) end(gone_);
}

void Peer::say_farewell(uint64_t now_ns) {
  farewell_ns_ = last_byte_ns_ = now_ns;
  connection_->link.context().expect_end();
  connection_->records.send(RecordKind::kFarewell, bytes_of(connection_->rings.taken()));
}

// The peer keeps the link until this end ends it. What it has taken has ended.
Status Peer::on_farewell(std::span<const std::byte> payload) {
  LinkContext& context = connection_->link.context();
  const auto counts = words_of<Rings::Counts>(payload);
  if (!counts) return context.fail_protocol("a farewell cut short");
  if (const Status status = connection_->rings.on_counts(*counts); status != Status::kOk) {
    return status;
  }
  (void)take_messages();  // what it told before
  peer_left_ = true;
  return context.fail(peer_has_left());
}

// The last that came over it may be a farewell.
void Peer::end_with_link() {
  const Error failure = connection_->link.context().failure();
  if (take_records() == Status::kOk) (void)take_messages();
  end(peer_left_ ? peer_has_left() : failure);
}

bool Peer::is_farewell_over(uint64_t now_ns) {
  if (farewell_ns_ == 0) {
    if (messages_.all_told() || now_ns - leaving_since_ns_ >= kTellNs) say_farewell(now_ns);
    return false;
  }
  const uint64_t traffic = connection_->link.traffic();
  if (std::exchange(traffic_, traffic) != traffic) last_byte_ns_ = now_ns;
  return now_ns - last_byte_ns_ >= kFarewellNs || now_ns - farewell_ns_ >= kLongestFarewellNs;
}

}  // namespace slime
