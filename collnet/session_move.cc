// What the members do when their switch is gone: each becomes the switch of a part of the slots.
//
//   1. whoever notices pauses its worker and begins a gather in the ring; the others see that they
//      are waited for, pause and join in, so that nobody accepts a result any more
//   2. all tell each other the epochs of their slots
//   3. all resume: see worker_move.cc
#include <slime/log.h>

#include "collnet/session.h"

namespace slime {

void Session::begin_move() {
  if (worker_->trouble()) SLIME_WARN("%s: %s", name_.c_str(), worker_->trouble()->what.c_str());
  worker_->pause();
  announced_.assign(ring_->size(), std::byte{1});
  stage_ = Stage::kAnnouncing;
  auto begun = ring_->begin_gather(announced_, 1, Ring::Topic::kMove);
  if (!begun) worker_->give_up(std::move(begun.error()));
}

void Session::continue_move(uint64_t now_ns) {
  Error error;
  const Status status = ring_->step(&error);
  if (status == Status::kAgain) return;
  if (status != Status::kOk) return worker_->give_up(std::move(error));
  auto moved = next_stage(now_ns);
  if (!moved) worker_->give_up(std::move(moved.error()));
}

Result<void> Session::next_stage(uint64_t now_ns) {
  if (stage_ == Stage::kAnnouncing) {
    stage_ = Stage::kComparing;
    epochs_.assign(size_t{job_.slots} * ring_->size(), 0);
    worker_->epochs(std::span(epochs_).subspan(size_t{job_.slots} * ring_->rank(), job_.slots));
    return ring_->begin_gather(std::as_writable_bytes(std::span(epochs_)),
                               size_t{job_.slots} * sizeof(uint32_t), Ring::Topic::kMove);
  }
  stage_ = Stage::kStill;
  const auto generation = static_cast<uint8_t>(job_.generation + 1);
  auto serving = serve(generation);
  if (!serving) return serving;
  worker_->resume({.generation = generation, .direct = true, .shards = 1, .epochs = epochs_},
                  now_ns);
  if (lease_) lease_->let_lapse();
  if (ring_->rank() == 0) {
    SLIME_WARN(
        "%s: going on without the switch: the ranks sum up for each other, slower, with the "
        "same results",
        name_.c_str());
  }
  return {};
}

Result<void> Session::serve(uint8_t generation) {
  net::JobSpec spec;
  spec.job = job_.job;
  spec.generation = generation;
  spec.slots = job_.slots;
  spec.max_lanes = job_.lanes;
  spec.children = members_;
  served_ = std::make_unique<net::Shard>(ring_->rank(), ring_->size());
  return served_->add_job(spec);
}

void Session::on_datagram(std::span<const std::byte> datagram, const SocketAddress& from,
                          uint64_t now_ns) {
  sap::Header header;
  if (sap::decode(datagram, &header) != sap::Fault::kNone) return;
  const bool asks_peer = (header.flags & sap::flag::kFallback) != 0;
  const bool for_server =
      header.type == sap::Type::kContribution || (header.type == sap::Type::kQuery && !asks_peer);
  if (!for_server) return worker_->on_datagram(datagram, now_ns);
  // Before this rank has moved too, what comes is dropped; the time-out sends it again.
  if (served_) served_->handle(datagram, from, now_ns, *this);
}

void Session::send(const net::Outgoing& packet, std::span<const SocketAddress> to) {
  std::array<std::byte, sap::kMaxPacketBytes> bytes;
  std::copy(packet.header.begin(), packet.header.end(), bytes.begin());
  std::copy(packet.payload.begin(), packet.payload.end(), bytes.begin() + sap::kHeaderBytes);
  const size_t size = sap::kHeaderBytes + packet.payload.size();
  for (const SocketAddress& member : to) port_->send(member, std::span(bytes).first(size));
}

}  // namespace slime
